"""Fourier transforms."""

import numpy as np

from from_numpy.functions.registry import program


def _of_types(rng):
    return (
        rng.normal(size=(7, 12)),
        rng.normal(size=(5, 34)) + 1j * rng.normal(size=(5, 34)),
        rng.normal(size=(3, 4, 5)).astype(np.float32),
        rng.integers(-5, 5, (6, 17)),
    )


@program(_of_types)
def transforms(x, z, f, n):
    return (
        np.fft.fft(x),
        np.fft.fft(x, axis=0),
        np.fft.ifft(z),
        np.fft.ifft(z, axis=0, norm="ortho"),
        np.fft.fft(f, axis=1),
        np.fft.fft(n),
        np.fft.fft(z, n=19),
        np.fft.fft(z, 48, axis=-1, norm="forward"),
        np.fft.ifft(x[:, 3], norm="forward"),
        np.abs(np.fft.fft(x[0] * 2)) ** 2,
    )


@program(_of_types)
def real_transforms(x, z, f, n):
    return (
        np.fft.rfft(x),
        np.fft.rfft(x, axis=0),
        np.fft.rfft(f),
        np.fft.rfft(n, 13),
        np.fft.irfft(z),
        np.fft.irfft(z, 21, axis=0),
        np.fft.irfft(np.fft.rfft(x, axis=0), 7, axis=0),
        np.fft.hfft(z, norm="ortho"),
        np.fft.ihfft(x),
        np.fft.irfft(f),
    )


@program(_of_types)
def transforms_of_several_dimensions(x, z, f, n):
    spectrum = np.fft.rfft2(x)
    return (
        np.fft.fft2(z),
        np.fft.ifft2(z, norm="ortho"),
        np.fft.fftn(f),
        np.fft.fftn(f, s=(4, 6), axes=(0, 2)),
        np.fft.ifftn(f, axes=(1,)),
        spectrum,
        np.fft.irfft2(spectrum, s=x.shape),
        np.fft.rfftn(f),
        np.fft.irfftn(z),
    )


@program(_of_types)
def frequencies(x, z, f, n):
    step = 0.1
    return (
        np.fft.fftfreq(8, step),
        np.fft.fftfreq(9),
        np.fft.fftfreq(x.shape[1], x[0, 0]),
        np.fft.rfftfreq(9, d=1 / 3),
        np.fft.rfftfreq(8),
        np.fft.fftshift(x),
        np.fft.fftshift(z, axes=1),
        np.fft.ifftshift(x, axes=(0,)),
        np.fft.ifftshift(n[0]),
    )


@program(lambda rng: (rng.random((12, 15)), 0.02))
def heat_by_transforms(u, dt):
    kx = 2 * np.pi * np.fft.fftfreq(u.shape[0])
    ky = 2 * np.pi * np.fft.fftfreq(u.shape[1])
    k2 = kx[:, None] ** 2 + ky[None, :] ** 2
    v = np.fft.fft2(u)
    for _ in range(4):
        v = v * np.exp(-k2 * dt)
    return np.real(np.fft.ifft2(v))
