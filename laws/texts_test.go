package laws

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// vagueWords hide the subject of a sentence, or have a usual name in the trade.
var vagueWords = regexp.MustCompile(`(?i)\b(somebody|someone|anybody|anyone|whoever|nobody|everybody|everyone|shelves|latch|at a blow)\b`)

// unplain are words that texts of the console do not use, with the words they use
// instead: the field's term, and the name of the thing.
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
	regexp.MustCompile(`(?i)\b(of|like|also) those\b`):                                                      "the noun",
	regexp.MustCompile(`(?i)\bso many\b|\bno more of it\b`):                                                 "the number",
	regexp.MustCompile(`(?i)\btemplate(s)? (is|was|has)\b`):                                                 "the drop",
}

// sayings are texts that may have such a word all the same.
var sayings = map[string]string{
	"fault.codes_exhausted": "so many codes",
}

// texts are the English texts of the console by their keys.
func texts(t *testing.T) map[string]string { return textsIn(t, "en") }

func textsIn(t *testing.T, language string) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob("views/i18n/" + language + "*.json")
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

// sentence ends with a full stop, a question mark, a semicolon or a colon, before a
// space or the end of the text.
var sentence = regexp.MustCompile(`[.?;:](?: |$)`)

// A refusal says in whole sentences what the problem is and what to do about it.
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

func TestRefusalsSayWhatToDoInChinese(t *testing.T) {
	clause := regexp.MustCompile(`[。；：]`)
	for key, text := range textsIn(t, "zh-CN") {
		if strings.HasPrefix(key, "fault.") && (len(clause.FindAllString(text, -1)) < 2 || !strings.HasSuffix(text, "。")) {
			t.Errorf("%s is %q\n\tsay what is the matter, and in a second sentence what to do about it", key, text)
		}
	}
}

// advice separates the problem from the advice in a text of the API.
var advice = regexp.MustCompile(`[;:] `)

// unadvised are refusals without advice: refusals that only Dropbell's own programs
// see, refusals that devices and providers get, and refusals that are advice
// themselves.
var unadvised = map[string]bool{
	"not_startable": true, "audience_gone": true, "range_too_large": true, "no_work": true, "lease_lost": true, "not_firable": true,
	"no_job": true, "job_lease_lost": true, "consents_taken": true, "unwritable": true, "coupon_raced": true, "sheet_bad_row": true,
	"callback_unreadable": true, "callback_source_unknown": true, "body_too_large": true, "pass_token_invalid": true, "pass_not_found": true, "pass_devices_exceeded": true,
	"second_factor_missing": true, "passkeys_unavailable": true, "unauthenticated": true, "unsupported_media_type": true,
	"precondition_required": true, "method_not_allowed": true, "malformed_json": true, "invalid_request": true, "malformed": true, "cross_origin": true, "": true,
	"rate_limited": true, // the time to wait is added to the text
}

// The refusals of rules, which the API answers with, name their subjects too, and
// say what the caller can do.
func TestRefusalsNameTheirSubjects(t *testing.T) {
	made := regexp.MustCompile(`fault\.New\([^,]+,\s*"([a-z_0-9]*)",\s*"((?:[^"\\]|\\.)*)"`)
	found := 0
	walk(t, func(name string, raw []byte) {
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, m := range made.FindAllStringSubmatch(string(raw), -1) {
			found++
			for _, word := range vagueWords.FindAllString(m[2], -1) {
				t.Errorf("%s says %q in %q", name, word, m[2])
			}
			if !unadvised[m[1]] && !advice.MatchString(m[2]) {
				t.Errorf("%s: %s is %q\n\tsay what is the matter, and behind a semicolon what to do about it", name, m[1], m[2])
			}
		}
	})
	if found < 100 {
		t.Errorf("only %d refusals were found", found)
	}
}

// The English texts of stored sentences equal the texts that programs store: the
// console recognises these sentences and shows them in other languages.
func TestStoredSentencesAreThoseOfThePrograms(t *testing.T) {
	var sources strings.Builder
	walk(t, func(name string, raw []byte) {
		if filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !within(name, "views", "sdk") {
			sources.Write(raw)
		}
	})
	program := strings.ReplaceAll(sources.String(), `\"`, `"`)
	for key, text := range texts(t) {
		if !strings.HasPrefix(key, "said.") || strings.HasPrefix(key, "said.net.") { // those of the operating system
			continue
		}
		for _, part := range regexp.MustCompile(`\{\d\}`).Split(text, -1) {
			if !strings.Contains(program, part) {
				t.Errorf("%s is %q, but no program stores %q", key, text, part)
			}
		}
	}
}

// The console knows all sentences that senders store as the reason why a message was not
// sent, so that it does not show them as a provider's own words. Passes of wallets and
// Live Activities store none.
func TestSentencesOfSendersAreKnown(t *testing.T) {
	var forms []string
	for key, text := range texts(t) {
		if strings.HasPrefix(key, "said.") {
			forms = append(forms, regexp.MustCompile(`\{\d\}`).ReplaceAllString(text, "%"))
		}
	}
	whole := regexp.MustCompile(`Detail: *(?:delivery\.DetailOf\()?(?:fmt\.Sprintf\()?"((?:[^"\\]|\\.)+)"( *\+)?`)
	ends := regexp.MustCompile(`[dD]etail *\+=? *"(: [^"]+)"`)
	found := 0
	walk(t, func(name string, raw []byte) {
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || !within(name, "adapters", "domain", "worker") ||
			within(name, "adapters/wallet") || strings.HasSuffix(name, "broadcast.go") {
			return
		}
		for _, m := range whole.FindAllStringSubmatch(string(raw), -1) {
			found++
			start, _, _ := strings.Cut(m[1], "%")
			if !slices.ContainsFunc(forms, func(f string) bool {
				begin, _, open := strings.Cut(f, "%")
				return f == m[1] || begin == start && open || strings.HasPrefix(start, begin) && open
			}) {
				t.Errorf("%s stores %q, which no said.… of the catalogue recognises", name, m[1])
			}
		}
		for _, m := range ends.FindAllStringSubmatch(string(raw), -1) {
			found++
			if !slices.ContainsFunc(forms, func(f string) bool { return strings.HasSuffix(f, m[1]) }) {
				t.Errorf("%s stores a sentence that ends with %q, which no said.… of the catalogue recognises", name, m[1])
			}
		}
	})
	if found < 40 {
		t.Errorf("only %d sentences were found", found)
	}
}
