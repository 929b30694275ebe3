"""Signal processing: the spectrogram of a chirp in noise, and where its loudest frequency is."""

import sys
from zlib import crc32

import numpy as np

SECONDS, SMALL = 180.0, 2.0
RATE = 22_050
FRAME, HOP = 1024, 256


def recording(seconds):
    rng = np.random.default_rng(8)
    time = np.arange(int(seconds * RATE)) / RATE
    sweep = 300 + 4000 * time / seconds
    phase = 2 * np.pi * np.cumsum(sweep) / RATE
    signal = np.sin(phase) + 0.3 * np.sin(2 * phase)
    signal += 0.5 * rng.standard_normal(len(time))
    return signal.astype(np.float32)


def spectrogram(signal):
    """Power in decibels, frames along the first axis."""
    frames = np.lib.stride_tricks.sliding_window_view(signal, FRAME)[::HOP]
    spectrum = np.fft.rfft(frames * np.hanning(FRAME), axis=1)
    power = np.abs(spectrum) ** 2
    return 10 * np.log10(power + 1e-12)


def main(seconds=SECONDS):
    signal = recording(seconds)
    signal /= np.abs(signal).max()
    decibels = spectrogram(signal)
    floor = np.median(decibels, axis=0)
    audible = np.clip(decibels - floor, 0, 60)

    frequencies = np.fft.rfftfreq(FRAME, 1 / RATE)
    peaks = frequencies[decibels.argmax(axis=1)]
    weights = 10 ** (decibels / 10)
    centroid = (weights * frequencies).sum(axis=1) / weights.sum(axis=1)
    print(f"{len(decibels)} frames, the peak goes from {peaks[0]:.0f} Hz to {peaks[-1]:.0f} Hz")
    print(f"mean {audible.mean():.12g} dB above the floor, centroid {centroid.mean():.12g} Hz")
    print(f"checksum {crc32(decibels):08x}")


if __name__ == "__main__":
    main(SMALL) if "--small" in sys.argv[1:] else main()
