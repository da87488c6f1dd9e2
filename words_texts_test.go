package dropbell_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unplain are words that texts of the console do not use, with what they use
// instead: the trade's word, and the name of what is meant.
var unplain = map[*regexp.Regexp]string{
	vagueWords: "name the user, member, customer or recipient",
	regexp.MustCompile(`(?i)\b(goes|go|going|gone|went) out\b`):                                             "is sent, was sent",
	regexp.MustCompile(`(?i)\bfor good\b`):                                                                  "permanently",
	regexp.MustCompile(`(?i)\b(goes|go|going) on\b`):                                                        "continues",
	regexp.MustCompile(`(?i)\bby itself\b`):                                                                 "say when it happens",
	regexp.MustCompile(`(?i)\b(fell|falls) away\b`):                                                         "was not sent",
	regexp.MustCompile(`(?i)\bbecame of\b`):                                                                 "the result",
	regexp.MustCompile(`(?i)\b(late|delay)[^.]*\bhalf\b`):                                                   "median delay",
	regexp.MustCompile(`(?i)\bgets nothing|get nothing|got nothing`):                                        "control group; gets no message",
	regexp.MustCompile(`(?i)^(who|what|which|how) (?:[a-z]+ )?(gets|got|goes|went|belongs|they get|one)\b`): "the noun: audience, message, rules",
	regexp.MustCompile(`(?i)\b(altogether|in all)$`):                                                        "total",
	regexp.MustCompile(`(?i)\ban own\b|\bof no shop\b`):                                                     "without a shop, its own",
	regexp.MustCompile(`(?i)\bso many\b|\bno more of it\b`):                                                 "the number",
	regexp.MustCompile(`(?i)\btemplate(s)? (is|was|has)\b`):                                                 "the drop",
}

// sayings are texts that may have such a word all the same.
var sayings = map[string]string{
	"fault.codes_exhausted": "so many codes",
}

// texts are the English texts of the console by their keys.
func texts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob("views/i18n/en*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d catalogues, %v", len(files), err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var part map[string]string
		if err := json.Unmarshal(raw, &part); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for key, text := range part {
			all[key] = text
		}
	}
	return all
}

func TestTextsAreInPlainWords(t *testing.T) {
	for key, text := range texts(t) {
		for pattern, instead := range unplain {
			if found := pattern.FindString(text); found != "" && !strings.Contains(sayings[key], strings.ToLower(found)) {
				t.Errorf("%s says %q in %q\n\tsay %s", key, found, text, instead)
			}
		}
	}
}

// sentence ends with a full stop, or a question mark, before the next one or the
// end.
var sentence = regexp.MustCompile(`[.?;:](?: |$)`)

// A refusal says in whole sentences what is the matter and what to do about it.
func TestRefusalsSayWhatToDo(t *testing.T) {
	for key, text := range texts(t) {
		if !strings.HasPrefix(key, "fault.") {
			continue
		}
		if n := len(sentence.FindAllString(text, -1)); n < 2 || !strings.HasSuffix(text, ".") {
			t.Errorf("%s has %d sentences: %q\n\tsay what is the matter, and in a second sentence what to do about it", key, n, text)
		}
	}
}

// The rules' own refusals, which the API answers with, name their subjects too.
func TestRefusalsNameTheirSubjects(t *testing.T) {
	made := regexp.MustCompile(`fault\.New\([^,]+,\s*"[a-z_0-9]*",\s*"((?:[^"\\]|\\.)*)"`)
	found := 0
	walk(t, func(name string, raw []byte) {
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, m := range made.FindAllStringSubmatch(string(raw), -1) {
			found++
			for _, word := range vagueIn(m[1]) {
				t.Errorf("%s says %q in %q", name, word, m[1])
			}
		}
	})
	if found < 100 {
		t.Errorf("only %d refusals were found", found)
	}
}
