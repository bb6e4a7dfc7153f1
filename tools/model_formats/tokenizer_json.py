"""tokenizer.json of Hugging Face, made from what other files say about a vocabulary."""
import json
import re

from .arrays import Refused

BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")


def added(token, content):
    return {"id": token, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def whole(model, **parts):
    fields = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
              "post_processor": None, "decoder": None}
    return json.dumps(fields | parts | {"model": model}, ensure_ascii=False, indent=1)


def template(single, pair, special):
    def item(name):
        word, _, kind = name.partition(":")
        return {"Sequence": {"id": word, "type_id": int(kind or 0)}} if word in "AB" else {"SpecialToken": {"id": word, "type_id": int(kind or 0)}}

    return {"type": "TemplateProcessing", "single": [item(name) for name in single.split()], "pair": [item(name) for name in pair.split()],
            "special_tokens": {name: {"id": name, "ids": [token], "tokens": [name]} for name, token in special.items()}}


def word_pieces(vocabulary):
    """Of BERT, in lower case and without accents: the lines of vocab.txt."""
    tokens = {word: token for token, word in enumerate(vocabulary)}
    special = {name: tokens[name] for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if name in tokens}
    if len(special) != 5 or len(tokens) != len(vocabulary):
        raise Refused("vocab.txt: expected different words, among them [PAD], [UNK], [CLS], [SEP] and [MASK]")
    return whole({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": tokens},
                 added_tokens=[added(token, name) for name, token in sorted(special.items(), key=lambda s: s[1])],
                 normalizer={"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
                 pre_tokenizer={"type": "BertPreTokenizer"},
                 post_processor=template("[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", {name: special[name] for name in ("[CLS]", "[SEP]")}),
                 decoder={"type": "WordPiece", "prefix": "##", "cleanup": True})


def merges_of(tokens, scores, skip):
    """SentencePiece joins the two neighbours whose whole has the best score. As a list of pairs: every way to cut a piece in two, the
    pieces by score; of equal ones those with the earlier parts first."""
    merges = []
    for piece, token in tokens.items():
        if token in skip:
            continue
        pairs = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece)) if piece[:cut] in tokens and piece[cut:] in tokens]
        pairs = [pair for pair in pairs if tokens[pair[0]] not in skip and tokens[pair[1]] not in skip]
        merges += [(-scores[token], token, tokens[a], tokens[b], f"{a} {b}") for a, b in pairs]
    return [merge[-1] for merge in sorted(merges)]


def sentence_pieces(pieces, scores):
    """Of Llama 2: byte-pair encoding by score over characters, "▁" for a space, one at the start; unknown characters as bytes. `pieces`
    are strings; <unk>, <s> and </s> are the first three."""
    tokens = {piece: token for token, piece in enumerate(pieces)}
    if pieces[:3] != ["<unk>", "<s>", "</s>"] or len(tokens) != len(pieces):
        raise Refused("expected different pieces that begin with <unk>, <s>, </s>")
    skip = {0, 1, 2} | {token for piece, token in tokens.items() if BYTE_PIECE.fullmatch(piece)}
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    back = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    return whole({"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": tokens, "merges": merges_of(tokens, scores, skip)},
                 added_tokens=[added(token, pieces[token]) for token in range(3)],
                 normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, space]},
                 post_processor=template("<s> A", "<s> A <s>:1 B:1", {"<s>": 1}), decoder={"type": "Sequence", "decoders": back})


def byte_pairs(tokens, merges, special, digits):
    """Of GPT-2 and what GGUF calls so: bytes as characters, words by GPT-2's pattern, after single digits where `digits` is set."""
    by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    before = [{"type": "Digits", "individual_digits": True}, by_bytes] if digits else [by_bytes]
    return whole({"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {word: token for token, word in enumerate(tokens)},
                  "merges": merges},
                 added_tokens=[added(token, tokens[token]) for token in special],
                 pre_tokenizer={"type": "Sequence", "pretokenizers": before}, decoder=by_bytes | {"add_prefix_space": True})
