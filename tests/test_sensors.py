"""Loaders run on small files of the data sets' formats made here, and on the data themselves where they are.

They are looked for in the folder that NILREGRET_DATA names, then in `shared/data` beside the checkout.
"""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

import nilregret as nr
from nilregret import environments as worlds

_GIVEN = os.environ.get("NILREGRET_DATA")
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(_GIVEN) if _GIVEN else _BESIDE if _BESIDE.is_dir() else None


def smooth(rows, sensors, seed):
    """Readings that vary in time with one wave and its phase for each sensor."""
    rng = np.random.default_rng([41, seed])
    phase = np.arange(sensors) / sensors
    return 10 * np.sin(np.arange(rows)[:, None] / 9 + phase) + rng.standard_normal((rows, sensors))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with all four data sets in small, named by NILREGRET_DATA."""
    temperature = 20 + smooth(96, 6, 0)
    hour = np.tile(np.arange(1, 49) % 48 / 2, 2)
    intel = dict(temperature=temperature, humidity=2 * temperature, hour_of_day=hour, day=np.repeat([0, 1], 48))
    raw = np.array([[4096, 2048], [1024, 1449]], dtype=np.uint16)
    light = dict(train=raw, test=raw[:1], coords=np.array([[0.0, 1.0], [2.0, 3.0]]))
    metr = dict(speed_mph=60 + smooth(2016, 5, 1), sensor_id=np.array(list("abcde")), latlon=np.ones((5, 2)))
    highway = 60 + smooth(180 * 20, 4, 2).T.reshape(4, 20, 180).transpose(0, 2, 1)
    highway[3, :, 3:8] = np.nan  # 15 days only: left out
    highway[:3, :60, 19] = np.nan  # a third of a day is missing: left out
    highway[0, 5:8, 2] = np.nan  # stays a gap
    april = dict(dense_speed_mph=highway, sparse_speed_mph=highway, dense_latlon=np.ones((4, 2)))
    april["sparse_latlon"] = np.ones((4, 2))
    for name, file, arrays in (
        ("intel_lab", "intel_lab_30min", intel),
        ("light_cmu", "light_cmu", light),
        ("metr_la_week", "metr_la_week", metr),
        ("la_highway_april", "la_highway_april", april),
    ):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / f"{file}.npz", **{key: np.asarray(value) for key, value in arrays.items()})
    monkeypatch.setenv("NILREGRET_DATA", str(tmp_path))
    return tmp_path


def test_intel_lab(folder):
    readings = worlds.intel_lab()
    assert readings.values.shape == (96, 6)
    assert readings.unit == "degrees C"
    np.testing.assert_allclose(worlds.intel_lab(quantity="humidity").values, 2 * readings.values)
    assert (np.diff(24 * readings.day + readings.hour) == 0.5).all()  # midnight ends a day
    morning = readings.select(days=[1], hours=(7, 10.5))
    np.testing.assert_array_equal(morning.hour, [7, 7.5, 8, 8.5, 9, 9.5, 10])
    np.testing.assert_array_equal(morning.values, readings.values[48 + 13 : 48 + 20])


def test_light_cmu(folder):
    train, test = worlds.light_cmu()
    # 16-bit readings times 1500 would overflow.
    np.testing.assert_allclose(train.values, [[1500, 750], [375, 1449 * 1500 / 4096]])
    np.testing.assert_allclose(test.values, [[1500, 750]])
    np.testing.assert_array_equal(train.positions, [[0, 1], [2, 3]])
    assert train.unit == "lux"


def test_metr_la(folder):
    week = worlds.metr_la()
    rush = week.select(days=worlds.METR_LA_WORKING_DAYS, hours=(6, 11))
    rows = np.concatenate([np.arange(288 * day + 72, 288 * day + 132) for day in (0, 1, 4, 5, 6)])
    np.testing.assert_array_equal(rush.values, week.values[rows])
    train, test = rush.split()
    assert (len(rush), len(train), len(test)) == (300, 200, 100)
    assert week.sensors == tuple("abcde")


@pytest.mark.parametrize("road", ["dense", "sparse"])
def test_la_highway(folder, road):
    readings = worlds.la_highway(road=road)
    assert readings.sensors == ("0", "1", "2")
    np.testing.assert_array_equal(np.unique(readings.day), np.arange(19))
    assert readings.values.shape == (19 * 180, 3)
    assert (readings.hour.min(), readings.hour.max()) == (6.0, pytest.approx(20 + 11 / 12))
    assert np.isnan(readings.values).sum() == 3
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(readings.values[:, 0])), 2 * 180 + np.arange(5, 8))
    filled, row = readings.filled().values, 2 * 180 + 4
    np.testing.assert_allclose(filled[row : row + 5, 0], np.linspace(filled[row, 0], filled[row + 4, 0], 5))
    source = np.load(folder / "la_highway_april" / "la_highway_april.npz")["dense_speed_mph"]
    np.testing.assert_array_equal(readings.values[180 * 4 + 17], source[:3, 17, 4])


def test_where_data_are_looked_for(folder, monkeypatch, tmp_path):
    file = folder / "light_cmu" / "light_cmu.npz"
    for path in (file, str(file), folder / "light_cmu", folder, None):
        assert worlds.light_cmu(path)[0].values.shape == (2, 2)
    monkeypatch.delenv("NILREGRET_DATA")
    with pytest.raises(
        nr.errors.MissingData, match=r"`light_cmu` was not found.*NILREGRET_DATA is not set.*Krause.*export"
    ):
        worlds.light_cmu()
    with pytest.raises(FileNotFoundError, match=r"looked for `metr_la_week/metr_la_week.npz` in `.*nowhere`.*T-GCN"):
        worlds.metr_la(tmp_path / "nowhere")
    with pytest.raises(nr.errors.MissingData, match=r"data.txt.gz` or `intel_lab/data.txt` in .*db.csail.mit.edu"):
        worlds.intel_lab_log(folder)


def test_files_of_another_format_are_refused(folder, tmp_path):
    with pytest.raises(nr.errors.InvalidInput, match="holds no array speed_mph, sensor_id, latlon, only train"):
        worlds.metr_la(folder / "light_cmu" / "light_cmu.npz")
    text = tmp_path / "light.npz"
    text.write_text("train test")
    with pytest.raises(nr.errors.InvalidInput, match="is not an npz file of plain arrays"):
        worlds.light_cmu(text)
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, train=np.array([{}], dtype=object), test=np.ones(1), coords=np.ones(1))
    with pytest.raises(nr.errors.InvalidInput, match="is not an npz file of plain arrays"):
        worlds.light_cmu(pickled)
    gaps = tmp_path / "gaps.npz"
    np.savez(gaps, train=np.array([[1.0, np.nan]]), test=np.ones((1, 2)), coords=np.ones((2, 2)))
    with pytest.raises(nr.errors.InvalidInput, match="not finite"):
        worlds.light_cmu(gaps)


LOG = """\
2004-02-28 23:59:58.9 3 1 20.0 40.0 100.0 2.7
2004-02-29 00:00:05.1 4 1 21.0 41.0 100.0 2.7
2004-02-29 00:00:35.5 5 1 22.0 42.0 100.0 2.7
2004-02-29 00:00:35.9 5 2 25.0 43.0 100.0 2.7
2004-02-29 00:00:40.0 5 5 25.0 43.0 100.0 2.7
2004-02-29 00:00:41.0 5 55 25.0 43.0 100.0 2.7
2004-02-29 00:00:42.0 5 65407 25.0 43.0 100.0 2.7
2004-02-29 00:00:43.0 5 2 122.153 -3.9 11.04 2.03
2004-02-29 00:00:44.0 5 2 11.9 43.0 100.0 2.7
2004-02-29 00:00:45.0 5 2
2004-02-29 00:03:01.0 6 2 38.0 44.0 100.0 2.7
2004-02-29 00:03:01.0 6 54 12.0 45.0 100.0 2.7
"""


@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz"])
def test_the_log_of_the_intel_lab(tmp_path, name):
    opened = gzip.open if name.endswith("gz") else open
    (tmp_path / "intel_lab").mkdir()
    with opened(tmp_path / "intel_lab" / name, "wt") as file:
        file.write(LOG)
    readings = worlds.intel_lab_log(tmp_path)
    nan = np.nan
    assert readings.sensors == ("1", "2", "54")
    np.testing.assert_array_equal(readings.values, [[20, nan, nan], [21.5, 25, nan], [nan, 38, 12]])
    np.testing.assert_array_equal(readings.day, [0, 1, 1])
    np.testing.assert_allclose(readings.hour, [23 + 59 / 60, 0, 3 / 60])
    humidity = worlds.intel_lab_log(tmp_path / "intel_lab" / name, quantity="humidity", minutes=30)
    np.testing.assert_array_equal(humidity.values, [[40, nan, nan], [41.5, 43.5, 45]])
    np.testing.assert_array_equal(humidity.hour, [23.5, 0.0])
    heard = readings.reporting(0.6)
    assert heard.sensors == ("1", "2")
    np.testing.assert_array_equal(heard.filled().values, [[20, 25], [21.5, 25], [21.5, 38]])
    np.testing.assert_array_equal(heard.complete().values, [[21.5, 25]])


def test_a_log_of_another_format_is_refused(tmp_path):
    file = tmp_path / "data.txt"
    file.write_text(LOG.replace(" ", ","))
    with pytest.raises(nr.errors.InvalidInput, match="has no usable line"):
        worlds.intel_lab_log(file)
    file.write_text(LOG + "yesterday noon 1 1 20.0 40.0 100.0 2.7\n")
    with pytest.raises(nr.errors.InvalidInput, match="Line 13 of"):
        worlds.intel_lab_log(file)
    file.write_text(LOG)
    with pytest.raises(nr.errors.InvalidInput, match="`quantity` is 'noise'"):
        worlds.intel_lab_log(file, quantity="noise")
    with pytest.raises(nr.errors.InvalidInput, match="`minutes` is 0"):
        worlds.intel_lab_log(file, minutes=0)


def test_positions_of_the_motes(tmp_path):
    text, table = tmp_path / "mote_locs.txt", tmp_path / "mote_locs.csv"
    text.write_text("1 21.5 23\n2 24.5 20\n\n")
    assert worlds.mote_positions(tmp_path) == {1: (21.5, 23.0), 2: (24.5, 20.0)}
    table.write_text("mote_id,x_m,y_m\n7,1,2\n")
    assert worlds.mote_positions(tmp_path) == worlds.mote_positions(table) == {7: (1.0, 2.0)}
    text.write_text("1 21.5 23\n2 24.5\n")
    with pytest.raises(nr.errors.InvalidInput, match="Line 2 of"):
        worlds.mote_positions(text)


def table(values, **times):
    values = np.array(values, dtype=float)
    return worlds.Readings(values=values, unit="m", sensors=tuple(map(str, range(values.shape[1]))), **times)


def test_tables_of_readings_refuse_nonsense():
    timed = table([[1.0, np.nan], [2.0, np.nan]], day=np.array([0, 0]), hour=np.array([1.0, 2.0]))
    with pytest.raises(nr.errors.InvalidInput, match="Sensor 1 has no reading at all"):
        timed.filled()
    with pytest.raises(nr.errors.InvalidInput, match="nothing was left after a selection"):
        timed.select(hours=(5, 6))
    with pytest.raises(nr.errors.InvalidInput, match="nothing was left"):
        timed.complete()
    with pytest.raises(nr.errors.InvalidInput, match="2 rows cannot be split into 2"):
        timed.split(2)
    with pytest.raises(nr.errors.InvalidInput, match="have no times"):
        table([[1.0]]).select(days=[0])
    with pytest.raises(nr.errors.InvalidInput, match="not in order of time"):
        table([[1.0], [2.0]], day=np.array([1, 0]), hour=np.array([1.0, 2.0])).filled()
    with pytest.raises(nr.errors.InvalidInput, match="one for each row"):
        table([[1.0], [2.0]], day=np.array([0]), hour=np.array([1.0]))
    assert repr(timed) == "Readings(2 rows of 2 sensors in m, 50.0% missing)"


TRAIN, TEST = smooth(80, 5, 3) + np.arange(5), smooth(20, 5, 4) + np.arange(5)


def test_a_sensor_network_by_hand():
    network = worlds.sensor_network(TRAIN, TEST)
    np.testing.assert_allclose(network.kernel.covariance, np.cov(TRAIN.T), atol=1e-9)
    np.testing.assert_allclose(network.functions, TEST - TRAIN.mean())
    np.testing.assert_allclose(network.prior_mean, TRAIN.mean(axis=0) - TRAIN.mean())
    np.testing.assert_array_equal(network.functions.argmax(axis=1), TEST.argmax(axis=1))  # it is the sensor sought
    assert network.average_variance == pytest.approx(TRAIN.var(axis=0, ddof=1).mean())
    assert network.noise**2 == pytest.approx(0.05 * network.average_variance)
    assert (len(network), len(network.arms)) == (20, 5)


def test_choices_of_a_sensor_network():
    spread = TRAIN.std(axis=0, ddof=1)
    own = worlds.sensor_network(TRAIN, TEST, center="sensor")
    np.testing.assert_allclose(own.functions, TEST - TRAIN.mean(axis=0))
    np.testing.assert_allclose(own.kernel.covariance, np.cov(TRAIN.T), atol=1e-9)
    np.testing.assert_array_equal(own.prior_mean, 0.0)
    raw = worlds.sensor_network(TRAIN, TEST, center="none")
    np.testing.assert_array_equal(raw.functions, TEST)
    np.testing.assert_allclose(raw.prior_mean, TRAIN.mean(axis=0))
    standard = worlds.sensor_network(TRAIN, TEST, center="sensor", standardize=True)
    np.testing.assert_allclose(standard.functions, (TEST - TRAIN.mean(axis=0)) / spread)
    np.testing.assert_allclose(standard.kernel.covariance, np.corrcoef(TRAIN.T), atol=1e-12)
    assert standard.average_variance == pytest.approx(1.0)
    raw = worlds.sensor_network(TRAIN, TEST, kernel="correlation", noise_share=0.1)
    np.testing.assert_allclose(raw.kernel.covariance, np.corrcoef(TRAIN.T), atol=1e-12)
    np.testing.assert_allclose(raw.functions, TEST - TRAIN.mean())
    assert raw.noise**2 == pytest.approx(0.1 * spread @ spread / 5)
    slow = worlds.sensor_network(TRAIN, TEST, lowest=True)
    np.testing.assert_allclose(slow.functions, TRAIN.mean() - TEST)
    np.testing.assert_allclose(slow.mean, TRAIN.mean())
    np.testing.assert_allclose(slow.prior_mean, TRAIN.mean() - TRAIN.mean(axis=0))
    assert slow.environment(3).best_value == pytest.approx(TRAIN.mean() - TEST[3].min())


def test_a_policy_plays_in_a_sensor_network():
    network = worlds.sensor_network(table(TRAIN), table(TEST))
    policy = nr.gp_ucb(network.arms, network.kernel, noise=network.noise, scale=0.2)
    runs = nr.replicate(lambda: policy, network.environment, 20, seeds=range(4))
    best = network.functions[:4].max(axis=1)
    np.testing.assert_allclose(runs.regret, best[:, None] - network.functions[np.arange(4)[:, None], runs.arms])
    assert runs.average_regret[:, -1].max() < runs.average_regret[:, 0].max()
    assert network.environment(0).noise == network.noise
    assert network.environment(0, noise=0.5).noise == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(training=TRAIN[:, :4]), "4 sensors and `held_out` 5"),
        (dict(training=TRAIN[:1]), "`training` has one row"),
        (dict(training=[1.0, 2.0]), "must be \\(rows, sensors\\)"),
        (dict(held_out=np.full((2, 5), np.nan)), "`held_out` has a value that is not finite.*filled"),
        (dict(training=np.where(np.arange(5) == 2, 1.0, TRAIN), standardize=True), "Sensor 2 always reads the same"),
        (dict(training=np.where(np.arange(5) == 2, 1.0, TRAIN), kernel="correlation"), "Sensor 2 always reads"),
        (dict(kernel="cosine"), "`kernel` is 'cosine'"),
        (dict(center="mean"), "`center` is 'mean'"),
        (dict(noise_share=-1.0), "`noise_share` is -1"),
    ],
)
def test_nonsense_is_explained(arguments, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        worlds.sensor_network(**{"training": TRAIN, "held_out": TEST, **arguments})
    with pytest.raises(nr.errors.InvalidInput, match="numbered from 0"):
        worlds.sensor_network(TRAIN, TEST).environment(20)


if DATA is not None:  # nothing to test otherwise: the loaders are tested above on files of the same format

    def test_the_intel_readings():
        readings = worlds.intel_lab(DATA)
        assert readings.values.shape == (240, 50)
        network = worlds.sensor_network(*readings.split())
        assert (len(network), len(network.arms)) == (80, 50)
        assert network.average_variance == pytest.approx(12.3, abs=0.05)  # degrees C squared
        assert network.noise**2 == pytest.approx(0.61, abs=0.005)  # Srinivas et al. quote 0.5
        assert len(readings.select(days=range(3), hours=(7, 10.5))) == 21
        assert len(worlds.mote_positions(DATA)) == 54

    def test_the_light_readings():
        train, test = worlds.light_cmu(DATA)
        assert train.values.shape == (601, 41)  # as Chowdhury and Gopalan count them
        assert test.values.shape == (192, 41)
        assert train.values.min() == 71 * 1500 / 4096
        assert max(train.values.max(), test.values.max()) == 1449 * 1500 / 4096

    def test_the_speeds_of_metr_la():
        train, test = worlds.metr_la(DATA).select(days=worlds.METR_LA_WORKING_DAYS, hours=(6, 11)).split()
        network = worlds.sensor_network(train, test, lowest=True)
        assert (len(train), len(network), len(network.arms)) == (200, 100, 207)
        assert network.average_variance == pytest.approx(126.0, abs=0.5)  # mph squared; I-880 has 95.6

    def test_the_speeds_of_april():
        kept = {"dense": ({0, 1, 4, 5, 7, 8, 11, 12, 13, 14, 17, 19, 20, 21, 22}, 89, 0.030)}
        kept["sparse"] = ({0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 18, 19, 20}, 70, 0.056)
        for road, (days, sensors, missing) in kept.items():
            readings = worlds.la_highway(DATA, road=road)
            assert set(readings.day.tolist()) == days
            assert len(readings.sensors) == sensors
            assert np.isnan(readings.values).mean() == pytest.approx(missing, abs=0.0005)
            assert np.isfinite(readings.filled().values).all()
