import numpy as np
import pytest
from PIL import Image

from planvec.errors import InputError
from planvec.io import files
from planvec.media import pictures


def moving_square(count, height=40, width=60):
    frames = np.full((count, height, width, 3), (160, 190, 130), np.uint8)
    for number, frame in enumerate(frames):
        frame[10:20, number : number + 10] = (200, 40, 40)
    return frames


def durations(path):
    with Image.open(path) as gif:
        for number in range(gif.n_frames):
            gif.seek(number)
            yield gif.info["duration"]


def test_gif_has_its_frames_and_times(tmp_path):
    frames = moving_square(9)
    pictures.save_gif(tmp_path / "a.gif", frames, fps=8, hold_last=2)
    with Image.open(tmp_path / "a.gif") as gif:
        assert (gif.n_frames, gif.size, gif.info["loop"]) == (9, (60, 40), 0)
        for number, frame in enumerate(frames):
            gif.seek(number)
            assert np.abs(np.asarray(gif.convert("RGB")).astype(int) - frame).max() <= 2
    times = list(durations(tmp_path / "a.gif"))
    assert sum(times[:-1]) == 1000
    assert times[-1] == 2000


def test_frames_that_show_the_same_still_take_their_time(tmp_path):
    pictures.save_gif(tmp_path / "a.gif", moving_square(2)[[0, 0, 0, 1, 1]], fps=10, hold_last=0.5)
    assert sum(durations(tmp_path / "a.gif")) == 900


def test_one_frame_is_enough(tmp_path):
    pictures.save_gif(tmp_path / "a.gif", moving_square(1))
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.n_frames == 1


def test_what_does_not_change_does_not_flicker(tmp_path):
    frames = np.repeat(np.random.default_rng(0).integers(0, 256, (1, 40, 60, 3), np.uint8), 6, axis=0)
    frames[:, :10, :10] = moving_square(6)[:, 10:20, :10]
    pictures.save_gif(tmp_path / "a.gif", frames)
    with Image.open(tmp_path / "a.gif") as gif:
        seen = []
        for number in range(gif.n_frames):
            gif.seek(number)
            seen.append(np.asarray(gif.convert("RGB"))[10:])
    assert all(np.array_equal(frame, seen[0]) for frame in seen)


@pytest.mark.parametrize(
    ("frames", "fps", "message"),
    [
        ([], 8, "needs frames"),
        ([np.zeros((2, 2, 3), np.uint8), np.zeros((3, 2, 3), np.uint8)], 8, "same size"),
        (moving_square(2), 0, "up to 50"),
        (moving_square(2), 100, "up to 50"),
    ],
)
def test_bad_gifs_are_refused(tmp_path, frames, fps, message):
    with pytest.raises(InputError, match=message):
        pictures.save_gif(tmp_path / "a.gif", frames, fps=fps)
    assert list(tmp_path.iterdir()) == []


def test_png_round_trip_in_a_new_folder(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    pictures.save_png(tmp_path / "new" / "a.png", image)
    with Image.open(tmp_path / "new" / "a.png") as png:
        assert np.array_equal(np.asarray(png), image)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.png"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    pictures.save_png(tmp_path / "a.png", moving_square(1)[0])
    before = (tmp_path / "a.png").read_bytes()
    monkeypatch.setattr(files.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        pictures.save_gif(tmp_path / "a.png", moving_square(3))
    assert (tmp_path / "a.png").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_caption_leaves_the_frame_and_shows_ticks():
    frame = moving_square(1, height=200)[0]
    todo = pictures.caption(frame, ["# Expert", "[ ] ChopTree", "", "step 3"], width=150)
    done = pictures.caption(frame, ["# Expert", "[x] ChopTree", "", "step 3"], width=150)
    assert todo.shape == done.shape == (200, 210, 3)
    assert np.array_equal(todo[:, :60], frame)
    assert (todo != done).any()
    assert np.array_equal(todo[80:], done[80:])


def test_caption_of_many_long_lines_stays_inside():
    frame = moving_square(1, height=200)[0]
    lines = ["[x] " + "a very long skill " * 9] * 17
    panel = pictures.caption(frame, lines, width=100)[:, 60:]
    edge = np.concatenate([panel[-2:].reshape(-1, 3), panel[:, -2:].reshape(-1, 3)])
    assert panel.shape == (200, 100, 3)
    assert (edge == edge[0]).all()
    assert pictures.caption(frame, []).shape == (200, 340, 3)


def test_contact_sheet():
    images = [moving_square(1)[0]] * 4 + [moving_square(1, height=20, width=10)[0]]
    sheet = pictures.contact_sheet(images, [f"number {i}" for i in range(5)], columns=3)
    side = pictures.MARGIN
    assert sheet.shape == (2 * (40 + pictures.LABEL + side) + side, 3 * (60 + side) + side, 3)
    assert np.array_equal(sheet[side : side + 40, side : side + 60], images[0])
    assert pictures.contact_sheet(images[:2], ["a", "b"], columns=5).shape[1] == 2 * (60 + side) + side


@pytest.mark.parametrize(("count", "labels", "columns"), [(0, 0, 3), (2, 1, 3), (2, 2, 0)])
def test_bad_contact_sheets_are_refused(count, labels, columns):
    with pytest.raises(InputError, match="a label for each"):
        pictures.contact_sheet(list(moving_square(count)), ["a"] * labels, columns)
