"""read_conll: tokens and labels from column files."""

import io

import pytest

from gramian.sequences import Sequences, SequenceVectorizer, read_conll

CONLL_2003 = """\
-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
# # B-NP O

Peter NNP B-NP B-PER


-DOCSTART- -X- -X- O

BRUSSELS NNP B-NP B-LOC
"""
UNIVERSAL = """\
# sent_id = 1
# text = a comment of exactly ten words, which is no token
1\tIl\til\tPRON
2\tpaie\tpayer\tVERB
3\t10 000\t10 000\tNUM

# sent_id = 2
1\tOui\toui\tINTJ
"""


def _nested(column):
    return [part.tolist() for part in column]


class TestReading:
    def test_all_columns(self, tmp_path):
        path = tmp_path / "eng.train"
        path.write_text(CONLL_2003, encoding="utf-8")
        for given in (path, str(path)):
            tokens, columns = read_conll(given)
            assert tokens == [["EU", "rejects", "#"], ["Peter"], ["BRUSSELS"]]
            assert len(columns) == 3
            assert _nested(columns[0]) == [["NNP", "VBZ", "#"], ["NNP"], ["NNP"]]
            assert _nested(columns[-1]) == [["B-ORG", "O", "O"], ["B-PER"], ["B-LOC"]]

    def test_open_files_and_lines(self, tmp_path):
        expected = read_conll(CONLL_2003.splitlines()).tokens
        assert read_conll(io.StringIO(CONLL_2003)).tokens == expected
        path = tmp_path / "latin"
        path.write_text("Müller N\n", encoding="latin-1")
        with path.open(encoding="latin-1") as file:
            assert read_conll(file).tokens == [["Müller"]]

    def test_chosen_columns(self):
        lines = CONLL_2003.splitlines()
        words, (entities,) = read_conll(lines, columns=[0, -1])
        assert words[0] == ["EU", "rejects", "#"]
        assert _nested(entities)[1:] == [["B-PER"], ["B-LOC"]]
        assert read_conll(lines, columns=[3]).tokens[1] == ["B-PER"]
        assert read_conll(lines, columns=[3]).columns == []

    def test_tabs_and_comments(self):
        words, (tags,) = read_conll(UNIVERSAL.splitlines(), columns=[1, 3])
        assert words == [["Il", "paie", "10 000"], ["Oui"]]
        assert _nested(tags) == [["PRON", "VERB", "NUM"], ["INTJ"]]

    def test_blanks_of_all_kinds(self):
        lines = ["EU  NNP \r\n", " \t\n", "a\u00a0b \t NN\n", "#\n"]
        assert read_conll(lines).tokens == [["EU"], ["a\u00a0b"]]

    def test_signature_of_utf_8(self, tmp_path):
        path = tmp_path / "signed"
        path.write_text("EU N\n", encoding="utf-8-sig")
        assert read_conll(path).tokens == [["EU"]]

    def test_nothing(self):
        assert read_conll([]) == ([], [])
        assert read_conll(["# a comment", "", "-DOCSTART-"]) == ([], [])
        tokens, (labels,) = read_conll([], columns=[0, 4])
        assert tokens == []
        assert labels.shape == (0,)

    def test_labels_fit_the_sequences(self):
        tokens, columns = read_conll(CONLL_2003.splitlines())
        X = SequenceVectorizer().fit_transform(tokens)
        assert isinstance(X, Sequences)
        assert X.flat(columns[-1]).tolist() == ["B-ORG", "O", "O", "B-PER", "B-LOC"]


class TestBadFiles:
    def test_wrong_number_of_fields(self, tmp_path):
        path = tmp_path / "broken"
        path.write_text("EU NNP O\n\nrejects VBZ\n", encoding="utf-8")
        message = r"broken, line 3 must have 3 fields like line 1, got 2: 'rejects VBZ'. Separate"
        with pytest.raises(ValueError, match=message):
            read_conll(path)
        with pytest.raises(ValueError, match=r"path_or_file, line 2 .* fields by tabs and"):
            read_conll(["EU\tNNP", "rejects VBZ"])

    def test_encoding(self, tmp_path):
        path = tmp_path / "latin"
        path.write_bytes("Müller N\n".encode("latin-1"))
        with pytest.raises(ValueError, match=r"latin must be UTF-8 text.* another encoding"):
            read_conll(path)
        with pytest.raises(TypeError, match=r"must hold text, not bytes.* text mode"):
            read_conll(io.BytesIO(b"EU N\n"))

    @pytest.mark.parametrize(
        "columns, error, message",
        [
            ([0, 4], ValueError, r"columns holds 4, but the lines of path_or_file have 4 fields"),
            ([], ValueError, r"columns must name at least the field of the token"),
            (0, TypeError, r"columns must be a list of field numbers.* got 0"),
            (["word"], TypeError, r"columns must be a whole number.* got 'word'"),
        ],
    )
    def test_columns(self, columns, error, message):
        with pytest.raises(error, match=message):
            read_conll(CONLL_2003.splitlines(), columns=columns)
