"""One episode of a policy, and its film as a GIF or MP4."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.errors import DeclarationError
from discodso.base.files import write_atomically
from discodso.tasks.policies.episodes import environment_for
from discodso.tasks.policies.making import STEP_LIMIT, make
from discodso.tasks.policies.tree_policy import TreePolicy

FORMATS = (".gif", ".mp4")


@dataclass(frozen=True)
class Episode:
    """What happened: the sum of rewards, the number of steps, and frames uint8[height, width, 3] if asked for."""

    total: float
    steps: int
    frames: tuple[Any, ...]
    frames_per_second: float


def play(policy: TreePolicy, environment: Any = None, seed: int = 0, *, film: bool = False) -> Episode:
    """Play one episode through Gymnasium."""
    frames: list[Any] = []
    total, steps, over, known = 0.0, 0, False, environment_for(policy, environment)
    if film and known.factory is None:
        with make(known) as env:
            if "rgb_array" not in (env.metadata.get("render_modes") or ()):
                raise DeclarationError(f"{known} cannot be drawn: it has no 'rgb_array' rendering")
    with make(known, **({"render_mode": "rgb_array"} if film else {})) as env:
        observation, _ = env.reset(seed=seed)
        while not over and steps < STEP_LIMIT:
            if film:
                frames.append(_frame(env))
            observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
            total, steps, over = total + float(reward), steps + 1, terminated or truncated
        if film:
            frames.append(_frame(env))
    return Episode(total, steps, tuple(frames), float(env.metadata.get("render_fps") or 30))


def _frame(env: Any) -> Any:
    try:
        frame = env.render()
    except Exception as error:  # the renderer's packages are missing, or it has no display
        raise DeclarationError(f"{env.spec.id} cannot be drawn: {' '.join(str(error).split())}") from None
    if not isinstance(frame, np.ndarray) or frame.ndim != 3:
        raise DeclarationError(f"{env.spec.id} cannot be drawn: it has no 'rgb_array' rendering")
    return frame


def require_format(path: Path) -> None:
    """Refuse a file that no film is written to."""
    if path.suffix.lower() not in FORMATS:
        raise DeclarationError(f"a film is a .gif or an .mp4, got {path.name!r}")


def save_film(episode: Episode, path: str | Path) -> None:
    """Write the frames as .gif (needs Pillow) or .mp4 (needs imageio with ffmpeg)."""
    path = Path(path)
    require_format(path)
    if not episode.frames:
        raise DeclarationError("the episode was played without film=True, there is nothing to save")
    write_atomically(path, _gif(episode) if path.suffix.lower() == ".gif" else _mp4(episode))


def _gif(episode: Episode) -> bytes:
    try:
        from PIL import Image
    except ImportError:
        raise DeclarationError("a GIF needs Pillow: pip install pillow") from None
    # Players show at most 50 frames a second; every second frame is left out where the environment has more.
    stride = max(1, round(episode.frames_per_second / 25))
    pictures = [Image.fromarray(frame).quantize(64) for frame in episode.frames[::stride]]
    duration, buffer = round(1000 * stride / episode.frames_per_second), io.BytesIO()
    pictures[0].save(buffer, "GIF", save_all=True, append_images=pictures[1:], duration=duration, loop=0)
    return buffer.getvalue()


def _mp4(episode: Episode) -> bytes:
    try:
        import imageio.v3 as imageio
        import imageio_ffmpeg  # noqa: F401 - the encoder
    except ImportError:
        raise DeclarationError(
            "an MP4 needs imageio with ffmpeg: pip install 'discodso[video]'; a .gif needs nothing more"
        ) from None
    frames = np.stack(episode.frames)
    even = frames[:, : frames.shape[1] // 2 * 2, : frames.shape[2] // 2 * 2]  # as video codecs want it
    return bytes(imageio.imwrite("<bytes>", even, extension=".mp4", fps=episode.frames_per_second))
