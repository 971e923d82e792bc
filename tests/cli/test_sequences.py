"""Label sequences on the command line: tables with one row for each position, and column files of tokens."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.pipeline import Pipeline, make_pipeline

from gramian import KernelCRF, Sequences, metrics
from gramian.cli.errors import UserError
from gramian.cli.model_file import Model, allowed_types, load, save
from gramian.cli.tables import Layout
from gramian.estimators.sequences.targets import ChainShape
from gramian.sequences import SequenceVectorizer, read_conll

QUICK = ("--regularization", "0.1")  # nothing is learned
FIT = ("fit", "train.csv", "--sequence", "sentence", "--target", "tag", "--out", "model.skops", *QUICK)  # fmt: skip
TOKENS = ("fit", "train.conll", "--out", "tokens.skops", *QUICK)

CONLL = """Peter NNP B-PER
Smith NNP I-PER
sleeps VBZ O

Rain NN O
fell VBD O
in IN O
Paris NNP B-LOC


Anna NNP B-PER
left VBD O
Rome NNP B-LOC
"""


def printed(result):
    return pd.read_csv(io.StringIO(result.stdout), dtype={"sequence": str})


@pytest.fixture
def table(run):
    """train.csv with 18 sequences and test.csv with 6; ids 000, 001, ... are in the order of the rows."""
    rng = np.random.default_rng(0)
    rows = []
    for sequence in range(24):
        tag = rng.integers(2)
        for _ in range(rng.integers(2, 6)):
            tag = 1 - tag if rng.random() < 0.8 else tag
            size, colour = 10 * tag + rng.normal(scale=4), rng.choice(["red", "blue"])
            rows.append((f"{sequence:03}", size, colour, "NV"[tag]))
    frame = pd.DataFrame(rows, columns=["sentence", "size", "colour", "tag"])
    train, test = frame[frame["sentence"] < "018"], frame[frame["sentence"] >= "018"]
    train.to_csv("train.csv", index=False)
    test.to_csv("test.csv", index=False)
    return train.reset_index(drop=True), test.reset_index(drop=True)


@pytest.fixture
def tokens(run):
    """train.conll with words, parts of speech and entities."""
    Path("train.conll").write_text(CONLL)
    return read_conll("train.conll")


def split(frame, column):
    return [group.to_list() for _, group in frame.groupby("sentence", sort=False)[column]]


def lengths(frame):
    return [len(tags) for tags in split(frame, "tag")]


# --- tables ----------------------------------------------------------------------------------------


def test_fit_says_what_it_decided(done, table):
    train = table[0]
    output = done(*FIT).output
    for words in (
        f"18, of {len(train)} positions",
        "tag: classification, 2 classes",
        "size: median if missing, standardised",
        "colour: one-hot",
        "rbf (default)",
        "KernelCRF",
        "proven",
    ):
        assert words in output
    assert "Not known" not in output
    assert list(load(Path("model.skops")).layout.columns) == ["size", "colour"]


def test_predictions_are_those_of_the_estimator_on_a_prepared_table(done, table):
    train, test = table
    done(*FIT)
    size = train["size"]

    def prepared(frame):
        scaled = (frame["size"] - size.mean()) / size.std(ddof=0)
        dummies = pd.get_dummies(frame["colour"], dtype=float)
        return Sequences(pd.concat([scaled, dummies], axis=1).to_numpy(), lengths(frame))

    model = KernelCRF(regularization=0.1).fit(prepared(train), split(train, "tag"))
    frame = printed(done("predict", "model.skops", "test.csv", "--proba"))
    assert list(frame) == ["sequence", "position", "prediction", "proba_N", "proba_V"]
    assert list(frame["sequence"]) == list(test["sentence"])
    assert list(frame["position"]) == list(test.groupby("sentence").cumcount())
    assert list(frame["prediction"]) == list(np.concatenate(model.predict(prepared(test))))
    expected = np.concatenate(model.predict_marginals(prepared(test)))
    np.testing.assert_allclose(frame[["proba_N", "proba_V"]], expected, rtol=1e-5)


def test_sequences_stay_in_the_order_of_the_rows(done, table):
    done(*FIT)
    forth = printed(done("predict", "model.skops", "test.csv"))
    parts = [group for _, group in table[1].groupby("sentence")]
    pd.concat(parts[::-1]).drop(columns="tag").to_parquet("back.parquet")
    done("predict", "model.skops", "back.parquet", "--out", "labels.parquet")
    back = pd.read_parquet("labels.parquet")
    assert list(back["sequence"].unique()) == list(forth["sequence"].unique()[::-1])
    back = back.sort_values(["sequence", "position"], ignore_index=True)
    assert back.to_dict("list") == forth.to_dict("list")


def test_a_model_file_is_a_plain_pipeline_and_holds_nothing_foreign(done, table):
    done(*FIT)
    types = skops.io.get_untrusted_types(file="model.skops")
    assert set(types) <= allowed_types()
    pipeline = skops.io.load("model.skops", trusted=types)
    assert isinstance(pipeline, Pipeline)
    expected = printed(done("predict", "model.skops", "test.csv"))["prediction"]
    assert list(np.concatenate(pipeline.predict(table[1]))) == list(expected)
    model = load(Path("model.skops"))
    save(model, Path("same.skops"))
    assert load(Path("same.skops")).layout == model.layout
    assert printed(done("predict", "same.skops", "test.csv"))["prediction"].equals(expected)


def test_labels_that_are_not_known(done, table):
    train, test = table
    missing = np.arange(len(train)) % 5 == 1
    train.assign(tag=train["tag"].mask(missing)).to_csv("train.csv", index=False)
    output = done(*FIT).output
    assert f"labels of {missing.sum()} positions" in output
    assert "what the next step could reach" in output
    some = test.assign(tag=test["tag"].mask(np.arange(len(test)) % 4 == 0))
    some.to_csv("some.csv", index=False)
    report = json.loads(done("evaluate", "model.skops", "some.csv", "--json", "-").stdout)
    assert report["rows"] == some["tag"].notna().sum()
    predicted = printed(done("predict", "model.skops", "some.csv"))["prediction"]
    right = (predicted == some["tag"])[some["tag"].notna()]
    assert report["metrics"]["position_accuracy"] == pytest.approx(right.mean())


def test_whole_numbers_are_labels_whatever_is_missing(done, table):
    train, test = table
    number = {"N": 1, "V": 2}
    column = train["tag"].map(number).astype(float)
    column[3] = np.nan
    train.assign(tag=column).to_parquet("train.parquet")  # 1.0 and 2.0 there
    test.assign(tag=test["tag"].map(number)).to_csv("test.csv", index=False)
    options = ("--sequence", "sentence", "--target", "tag", "--out", "model.skops", *QUICK)
    done("fit", "train.parquet", *options)
    assert set(printed(done("predict", "model.skops", "test.csv"))["prediction"]) == {1, 2}
    report = json.loads(done("evaluate", "model.skops", "test.csv", "--json", "-").stdout)
    assert report["metrics"]["position_accuracy"] > 0.7


def test_evaluate(done, table):
    test = table[1]
    done(*FIT)
    output = done("evaluate", "model.skops", "test.csv", "--json", "report.json").output
    for words in (f"{len(test)} rows", "Accuracy of sequences", "Log probability"):
        assert words in output
    values = json.loads(Path("report.json").read_text())["metrics"]
    assert list(values) == ["position_accuracy", "sequence_accuracy", "log_probability"]
    pipeline, tags = load(Path("model.skops")).pipeline, split(test, "tag")
    predicted = pipeline.predict(test)
    assert values["position_accuracy"] == metrics.position_accuracy(tags, predicted)
    assert values["sequence_accuracy"] == metrics.sequence_accuracy(tags, predicted)
    log_proba = pipeline[-1].predict_log_proba(pipeline[:-1].transform(test), tags)
    assert values["log_probability"] == pytest.approx(log_proba.sum() / len(test))


def test_options_reach_the_model(done, table):
    done(*FIT[:-2], "--kernel", "linear", "--optimize", "cv")
    model = load(Path("model.skops")).pipeline[-1]
    assert (model.kernel, model.optimize) == ("linear", "cv")
    assert np.isfinite(model.cv_log_loss_)


def test_taxonomy(done, refused, table):
    Path("tree.json").write_text('{"word": {"N": {}, "V": {}}, "mark": {}}')
    done(*FIT, "--taxonomy", "tree.json", "--share", "level")
    assert load(Path("model.skops")).pipeline[-1].share == "level"
    frame = printed(done("predict", "model.skops", "test.csv", "--proba", "--nodes"))
    np.testing.assert_allclose(frame["proba_N"], frame["node_N"])
    np.testing.assert_allclose(frame["node_N"] + frame["node_V"], frame["node_word"])
    values = json.loads(done("evaluate", "model.skops", "test.csv", "--json", "-").stdout)["metrics"]  # fmt: skip
    assert values["parent_accuracy"] >= values["position_accuracy"]
    assert {"taxo_loss", "hierarchical_f1", "reciprocal_rank"} <= set(values)
    Path("tree.json").write_text('{"word": {"N": {}}, "mark": {}}')
    assert "'V'" in refused(*FIT, "--taxonomy", "tree.json")


# --- column files ----------------------------------------------------------------------------------


def test_column_files(done, tokens):
    output = done(*TOKENS).output
    for words in (
        "3, of 10 positions",
        "field 2: classification, 4 classes",
        "linear (sparse indicators)",
        "1: indicators",
    ):
        assert words in output
    frame = printed(done("predict", "tokens.skops", "train.conll", "--proba"))
    assert list(frame["sequence"]) == list("0001111222")
    assert list(frame["position"]) == [0, 1, 2, 0, 1, 2, 3, 0, 1, 2]
    together = [list(zip(*fields)) for fields in zip(tokens.tokens, tokens.columns[0])]
    X = SequenceVectorizer().fit_transform(together)
    model = KernelCRF("linear", regularization=0.1).fit(X, tokens.columns[1])
    assert list(frame["prediction"]) == list(np.concatenate(model.predict(X)))
    expected = np.concatenate(model.predict_marginals(X))
    np.testing.assert_allclose(frame.iloc[:, 3:], expected, rtol=1e-5)


def test_new_column_files_may_lack_the_labels(done, refused, tokens):
    done(*TOKENS)
    lines = [line.rsplit(" ", 1)[0] for line in CONLL.splitlines()]
    Path("new.bio").write_text("\n".join(lines))
    expected = done("predict", "tokens.skops", "train.conll").stdout
    assert done("predict", "tokens.skops", "new.bio").stdout == expected
    assert "new.bio must have 3 fields in a line" in refused("evaluate", "tokens.skops", "new.bio")
    Path("words.conll").write_text("Peter\nsleeps\n")
    assert "words.conll must have 3 fields in a line" in refused(
        "predict", "tokens.skops", "words.conll"
    )


def test_chunks_are_scored_where_labels_are_tags(done, tokens):
    done(*TOKENS)
    values = json.loads(done("evaluate", "tokens.skops", "train.conll", "--json", "-").stdout)["metrics"]  # fmt: skip
    predicted = load(Path("tokens.skops")).pipeline.predict(
        [list(zip(*fields)) for fields in zip(tokens.tokens, tokens.columns[0])]
    )
    assert values["chunk_f1"] == metrics.chunk_f1_score(tokens.columns[1], predicted)


@pytest.mark.parametrize("field", ["1", "-2"])
def test_target_is_the_number_of_a_field(done, tokens, field):
    assert "field 1: classification, 5 classes" in done(*TOKENS, "--target", field).output
    values = json.loads(done("evaluate", "tokens.skops", "train.conll", "--json", "-").stdout)["metrics"]  # fmt: skip
    assert "chunk_f1" not in values


def test_a_kernel_may_be_named_for_tokens(done, tokens):
    assert "rbf (--kernel)" in done(*TOKENS, "--kernel", "rbf").output


def test_functions_in_a_vectorizer_are_refused(tokens):
    pipeline = make_pipeline(SequenceVectorizer(), KernelCRF("linear", regularization=1.0))
    pipeline.fit(tokens.tokens, tokens.columns[1])
    pipeline[0].features = print
    save(Model(pipeline, "classification", Layout("tokens", "1", 2)), Path("model.skops"))
    with pytest.raises(UserError, match=r"refused.*print"):
        load(Path("model.skops"))


def test_a_file_of_another_kind_of_model_is_refused(done, tokens):
    done(*TOKENS)
    with zipfile.ZipFile("tokens.skops") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    single = {"source": "array", "target": "y", "n_features": 2}
    for change in ({"task": "regression"}, {"layout": single}):
        metadata = json.dumps(json.loads(parts["gramian.json"]) | change)
        with zipfile.ZipFile("other.skops", "w") as archive:
            for name, content in (parts | {"gramian.json": metadata.encode()}).items():
                archive.writestr(name, content)
        with pytest.raises(UserError, match="holds no model for"):
            load(Path("other.skops"))


@pytest.mark.parametrize(
    "change",
    [
        {"_chain": ChainShape(500, False, None), "_score_rows": np.zeros((500, 4))},
        {"_chain": ChainShape(4, True, np.ones((6, 9), dtype=bool))},
        {"_chain": ChainShape(4, False, None)},
        {"_chain": "no chain"},
        {"_score_rows": None},
    ],
)
def test_a_file_whose_scores_do_not_fit_together_is_refused(done, tokens, change):
    """Compiled loops would write where there is no memory of theirs."""
    done(*TOKENS)
    model = load(Path("tokens.skops"))
    crf = model.pipeline[-1]
    crf._fitted = crf._fitted.with_values(**change)
    save(model, Path("forged.skops"))
    with pytest.raises(UserError, match="holds no model for classification"):
        load(Path("forged.skops"))


# --- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("train.csv", "--sequence", "text", "-t", "tag"), "train.csv has no column 'text'; it has sentence, size"),
        (("train.csv", "--sequence", "sentence", "-t", "label"), "train.csv has no column 'label'"),
        (("train.csv", "--sequence", "sentence"), "--target COLUMN"),
        (("train.csv", "--sequence", "tag", "-t", "tag"), "--sequence tag is the column of --target, too"),
        (("train.csv", "--sequence", "colour", "-t", "tag"), "in column 'colour' are not consecutive"),
        (("gap.csv", "--sequence", "sentence", "-t", "tag"), "the id in column 'sentence' is missing in row 3"),
        (("none.csv", "--sequence", "sentence", "-t", "tag"), "the target 'tag' is missing in all rows"),
        (("train.csv", "--sequence", "sentence", "-t", "size"), "--target size must hold labels, text or whole"),
        (("x.npz", "--sequence", "sentence"), "--sequence sentence is for tables, which end in one of .csv"),
        (("train.conll", "--sequence", "sentence"), "a blank line ends a sequence: leave it out"),
        (("train.conll", "-t", "tag"), "--target tag must be the number of a field of train.conll, 1 to 2"),
        (("train.conll", "-t", "0"), "field 0 is the token"),
        (("train.conll", "-t", "3"), "--target 3 must be"),
        (("train.conll", "--task", "regression"), "--task regression is not for label sequences"),
        (("train.conll", "--setting", "B"), "--setting B is for pairs, not for label sequences"),
        (("train.csv", "--left", "train.csv", "-t", "tag", "--sequence", "sentence"), "sentence is not for pairs"),
        (("words.conll",), "words.conll has one field in a line"),
        (("empty.conll",), "empty.conll has no tokens"),
        (("uneven.conll",), "line 2 must have 2 fields like line 1"),
        (("absent.conll",), "There is no file absent.conll"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(refused, table, tokens, arguments, words):
    train = table[0]
    train.assign(sentence=train["sentence"].where(train.index != 2)).to_csv("gap.csv", index=False)
    train.assign(tag=None).to_csv("none.csv", index=False)
    Path("words.conll").write_text("Peter\nsleeps\n")
    Path("empty.conll").write_text("\n# nothing\n")
    Path("uneven.conll").write_text("Peter O\nsleeps\n")
    assert words in refused("fit", *arguments, "--out", "model.skops")
    assert not Path("model.skops").exists()


def test_mistakes_when_predicting(done, refused, table, tokens):
    test = table[1]
    done(*FIT)
    done(*TOKENS)
    assert "it reads .conll, .bio, .iob" in refused("predict", "tokens.skops", "test.csv")
    assert "it reads .csv" in refused("predict", "model.skops", "train.conll")
    message = refused("predict", "model.skops", "test.csv", "--left", "test.csv")
    assert "--left test.csv is for models of pairs; this one is of sequences" in message
    assert "--nodes needs a model" in refused("predict", "model.skops", "test.csv", "--nodes")
    test.drop(columns="sentence").to_csv("new.csv", index=False)
    assert "new.csv has no column 'sentence'" in refused("predict", "model.skops", "new.csv")
    test.assign(tag="X").to_csv("new.csv", index=False)
    assert "no class of the model, the first is 'X'" in refused("evaluate", "model.skops", "new.csv")  # fmt: skip
    test.assign(tag=None).to_csv("new.csv", index=False)
    assert "give labels to compare with" in refused("evaluate", "model.skops", "new.csv")
    test.sort_values("size").to_csv("new.csv", index=False)
    message = refused("predict", "model.skops", "new.csv")
    assert "Sort the rows by 'sentence', and keep their order within a sequence" in message
    done("fit", "train.csv", "-t", "tag", "--out", "single.skops", *QUICK)
    assert "it reads .csv" in refused("predict", "single.skops", "train.conll")
