"""The clock of the clips on the screen. It is told the time and never asks for it."""

from typing import final

PAUSE_SECONDS = 0.5  # at the end of a clip before it repeats, at speed 1


@final
class Playback:
    """The common clock of two clips that play in a loop.

    Args:
        frames: number of frames of the longer clip.
        fps: frames per second at speed 1.
        now: the time in seconds.
        speed: playback speed.
    """

    def __init__(self, frames: int, fps: float, now: float, speed: float = 1.0) -> None:
        self._frames, self._fps = frames, fps
        self._played, self._since, self._speed = 0.0, now, speed
        self.paused = False

    def frame(self, now: float) -> int:
        """Return the index of the current frame."""
        return min(int(self._in_loop(now) * self._fps), self._frames - 1)

    def share(self, now: float) -> float:
        """Return the share of the clip that has been played, from 0 to 1."""
        return min(self._in_loop(now) * self._fps / self._frames, 1.0)

    def until_next(self, now: float, shortest: float = 0.0) -> float:
        """Return the seconds until the next frame; infinity while paused.

        At least `shortest` if frames are faster than that: some frames are skipped.
        """
        if self.paused:
            return float("inf")
        if 1 / self._fps / self._speed < shortest:
            return shortest
        at = self._in_loop(now) * self._fps
        frame = int(at)
        ends = frame + 1 if frame + 1 < self._frames else self._frames + PAUSE_SECONDS * self._fps
        return (ends - at) / self._fps / self._speed

    def toggle(self, now: float) -> None:
        """Pause or continue."""
        self._played, self._since = self._at(now), now
        self.paused = not self.paused

    def set_speed(self, speed: float, now: float) -> None:
        """Continue at another speed."""
        self._played, self._since = self._at(now), now
        self._speed = speed

    def _at(self, now: float) -> float:
        """Return the played time at speed 1, over all loops."""
        return self._played + (0.0 if self.paused else (now - self._since) * self._speed)

    def _in_loop(self, now: float) -> float:
        return self._at(now) % (self._frames / self._fps + PAUSE_SECONDS)
