# The shell that waits beside a process for its end; guard.py starts it, with a pipe as its input.
#
# Lines say what runs: `begin WHAT` and `done WHAT`. At the end of the input it ends what was begun and
# is not done: `launcher:PID` is asked first, `group:PID` and processes whose environment has the
# text of `mark:TEXT` are killed.
trap '' HUP INT QUIT TERM
known=' '
while read -r verb what; do
  case $verb in
    begin) known="$known$what " ;;
    done) case $known in *" $what "*) known="${known%% $what *} ${known#* $what }" ;; esac ;;
  esac
done
launchers=
for each in $known; do
  case $each in launcher:*) launchers="$launchers ${each#*:}" ;; esac
done
if [ -n "$launchers" ]; then
  echo 'distspmd: the process that launched ranks was killed; its ranks are ended.' >&2
  kill -TERM $launchers 2>/dev/null
  for wait in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    kill -0 $launchers 2>/dev/null || break
    sleep 0.1
  done
fi
for twice in 1 2; do
  for each in $known; do
    case $each in
      group:*) kill -KILL "-${each#*:}" 2>/dev/null ;;
      launcher:*) kill -KILL "${each#*:}" 2>/dev/null ;;
      mark:*)
        for file in $(grep -lsa -e "${each#*:}" /proc/[0-9]*/environ); do
          file=${file%/environ}
          kill -KILL "${file#/proc/}" 2>/dev/null
        done ;;
    esac
  done
done
