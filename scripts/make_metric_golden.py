#!/usr/bin/env python3
"""Writes what the reference packages make of a set of captions, for the tests of `crates/metrics`.

    python -m venv v && v/bin/pip install pycocoevalcap==1.2 nltk==3.10.4     # and a Java runtime (`java`)
    v/bin/python scripts/make_metric_golden.py crates/metrics/tests/golden

Reads `odd_captions.txt` in that folder; writes `tokens.tsv` (caption, tokens of pycocoevalcap's PTBTokenizer; every
caption in a file of its own, since that tokenizer looks at the line that follows) and `scores.json`: cases with pairs
of a candidate and its references, and BLEU-1..4, CIDEr and ROUGE-L of pycocoevalcap, METEOR of NLTK with exact matches
alone, and for comparison METEOR 1.5 of pycocoevalcap's Java program. The captions are made up here, from a seed.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

from nltk.translate.meteor_score import meteor_score
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer import ptbtokenizer
from pycocoevalcap.tokenizer.ptbtokenizer import PUNCTUATIONS, PTBTokenizer

WHO = ["a man", "A woman", "two men", "the little girl", "A young boy", "Three people", "a group of people", "Someone"]
LOOK = ["in a red shirt", "wearing a hat", "with a dog", "in a black-and-white coat", "who's smiling", "", "", ""]
DOES = ["is riding a bike", "are sitting at a table", "holds an umbrella", "is eating pizza", "is standing next to a car",
        "rides a skateboard", "isn't looking at the camera", "is playing tennis", "talks on a cell phone"]
WHERE = ["on the street", "in a park", "near the ocean", "in front of a building", "at the zoo", "on top of a hill",
         "by the dogs' house", "in someone's kitchen", "at 10:30 in the morning", "under a \"STOP\" sign"]
MORE = [", and it's raining", "; a cat watches", " (close-up)", " - side view", " while others watch", "", "", "", ""]
END = ["", ".", ".", "!", " ."]


def caption(r):
    words = [r.choice(WHO), r.choice(LOOK), r.choice(DOES), r.choice(WHERE)]
    return " ".join(w for w in words if w) + r.choice(MORE) + r.choice(END)


def variant(text, r):
    """The caption with some words changed, dropped or said twice: what a model might say."""
    words = text.split()
    for _ in range(r.randrange(4)):
        at = r.randrange(len(words))
        words[at : at + 1] = r.choice([[], [words[at]] * 2, ["the"], ["man"], [r.choice(WHERE)]])
        words = words or ["a"]
    return " ".join(words)


def tokens_alone(captions):
    """The tokens of each caption, as pycocoevalcap would have them if it were the only one."""
    home = os.path.dirname(os.path.abspath(ptbtokenizer.__file__))
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(os.path.join(folder, f"{i}"), os.path.join(folder, f"{i}.out")) for i in range(len(captions))]
        for (name, _), text in zip(pairs, captions):
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
        listed = os.path.join(folder, "all")
        with open(listed, "w", encoding="utf-8") as file:
            file.writelines(f"{name}\t{out}\n" for name, out in pairs)
        command = ["java", "-Dfile.encoding=UTF-8", "-cp", ptbtokenizer.STANFORD_CORENLP_3_4_1_JAR]
        command += ["edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase", "-ioFileList", listed]
        subprocess.run(command, cwd=home, capture_output=True, check=True)
        lines = [open(out, encoding="utf-8").read().rstrip("\n") for _, out in pairs]
    return [" ".join(w for w in line.rstrip().split(" ") if w not in PUNCTUATIONS) for line in lines]


class NoSynonyms:
    def synsets(self, _word):
        return []


class NoStems:
    def stem(self, word):
        return word


def meteor_exact(candidates, references):
    def one(key):
        refs = [r.split() for r in references[key]]
        return meteor_score(refs, candidates[key][0].split(), stemmer=NoStems(), wordnet=NoSynonyms())

    return sum(one(key) for key in candidates) / len(candidates)


def scores(candidates, references):
    """The figures for tokenized captions: {key: [candidate]} and {key: [reference, ...]}."""
    return {
        "bleu": Bleu(4).compute_score(references, candidates, verbose=0)[0],
        "cider": float(Cider().compute_score(references, candidates)[0]),
        "rouge_l": float(Rouge().compute_score(references, candidates)[0]),
        "meteor_exact": meteor_exact(candidates, references),
        "meteor_java": float(Meteor().compute_score(references, candidates)[0]),
    }


def case(name, pairs):
    """A case of raw captions: they go through pycocoevalcap's tokenizer, as its own evaluation does it."""
    tokenize = PTBTokenizer().tokenize
    candidates = tokenize({i: [{"caption": c}] for i, (c, _) in enumerate(pairs)})
    references = tokenize({i: [{"caption": t} for t in refs] for i, (_, refs) in enumerate(pairs)})
    listed = [{"candidate": c, "references": refs} for c, refs in pairs]
    return {"name": name, "pairs": listed, **scores(candidates, references)}


def cases():
    r = random.Random(1)
    coco_like = []
    for _ in range(120):
        refs = [caption(r)]
        refs += [variant(refs[0], r) if r.random() < 0.7 else caption(r) for _ in range(r.randrange(5))]
        coco_like.append((variant(refs[0], r) if r.random() < 0.8 else caption(r), refs))
    equal = [(refs[0], refs[:1]) for _, refs in coco_like[:20]]
    odd = [
        ("", ["a man"]),
        ("a", ["a man rides", "a"]),
        ("the the the the the the the", ["the cat is on the mat", "there is a cat on the mat"]),
        ("man a rides bike a", ["a man rides a bike"]),
        ("nothing in common", ["two dogs play outside"]),
        ("a man rides a bike down a very long and winding road", ["a man rides", "a man rides a bike down a road"]),
        ("cat", ["cat"]),
        ("a b", ["a b c d e f g h i j", "a"]),
    ]
    return [
        case("like COCO's", coco_like),
        case("equal to the reference", equal),
        case("odd", odd),
        case("one picture", coco_like[:1]),
        case("far shorter", [(" ".join(c.split()[:3]), refs) for c, refs in coco_like[:30]]),
    ]


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "odd_captions.txt"), encoding="utf-8") as file:
        odd = file.read().splitlines()
    r = random.Random(2)
    made = [variant(caption(r), r) if i % 3 else caption(r) for i in range(150)]
    captions = list(dict.fromkeys(odd + made))
    with open(os.path.join(folder, "tokens.tsv"), "w", encoding="utf-8") as file:
        for text, tokens in zip(captions, tokens_alone(captions)):
            file.write(f"{text}\t{tokens}\n")
    with open(os.path.join(folder, "scores.json"), "w", encoding="utf-8") as file:
        json.dump(cases(), file, indent=0, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
