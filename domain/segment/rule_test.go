package segment_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/fault"
	"dropbell/domain/segment"
)

func TestParse(t *testing.T) {
	deep := strings.Repeat(`{"all":[`, 6) + `{"field":"attribute","name":"a","op":"exists"}` + strings.Repeat(`]}`, 6)
	many := `{"all":[` + strings.Repeat(`{"field":"attribute","name":"a","op":"exists"},`, 50) + `{"field":"attribute","name":"a","op":"exists"}]}`
	for raw, want := range map[string]string{
		`{"all":[]}`: "",
		`{"any":[{"field":"attribute","name":"tier","op":"is","values":["gold"]},{"not":{"field":"contact","op":"has","values":["email"]}}]}`: "",
		`{"field":"claimed","op":"within_days","values":["30"]}`:                                                                              "",
		``:                                       "rule",
		`null`:                                   "rule",
		`[]`:                                     "rule",
		`{}`:                                     "rule",
		`{"all":[],"any":[]}`:                    "rule",
		`{"all":[]} x`:                           "rule",
		`{"all":[],"field":"locale"}`:            "rule",
		`{"some":[]}`:                            "rule",
		`{"all":{"field":"x"}}`:                  "rule",
		`{"field":1}`:                            "rule",
		strings.Repeat("[", 100_000):             "rule",
		strings.Repeat(`{"not":`, 50_000):        "rule",
		`"` + strings.Repeat("x", 300_000) + `"`: "rule",
		deep:                                     "rule.all[0].all[0].all[0].all[0].all[0]",
		many:                                     "rule",
		`{"all":[{"any":[]}]}`:                   "rule.all[0]",
		`{"all":[{"field":"shoe","op":"is"}]}`:   "rule.all[0].field",
		`{"all":[{"field":"locale","op":"gt","values":["1"]}]}`:                                              "rule.all[0].op",
		`{"all":[{"field":"attribute","op":"exists"}]}`:                                                      "rule.all[0].name",
		`{"all":[{"field":"attribute","name":"a'--","op":"exists"}]}`:                                        "rule.all[0].name",
		`{"all":[{"field":"locale","name":"a","op":"one_of","values":["en"]}]}`:                              "rule.all[0].name",
		`{"all":[{"field":"locale","op":"one_of"}]}`:                                                         "rule.all[0].values",
		`{"all":[{"field":"attribute","name":"a","op":"exists","values":["x"]}]}`:                            "rule.all[0].values",
		`{"all":[{"field":"contact","op":"has","values":["email","sms"]}]}`:                                  "rule.all[0].values",
		`{"all":[{"field":"contact","op":"has","values":["fax"]}]}`:                                          "rule.all[0].values[0]",
		`{"all":[{"field":"opted_out","op":"is","values":["fax"]}]}`:                                         "rule.all[0].values[0]",
		`{"all":[{"field":"locale","op":"one_of","values":["en","%"]}]}`:                                     "rule.all[0].values[1]",
		`{"all":[{"field":"timezone","op":"one_of","values":["Mars/One"]}]}`:                                 "rule.all[0].values[0]",
		`{"all":[{"field":"attribute","name":"a","op":"gt","values":["1e9"]}]}`:                              "rule.all[0].values[0]",
		`{"all":[{"field":"attribute","name":"a","op":"gt","values":["NaN"]}]}`:                              "rule.all[0].values[0]",
		`{"all":[{"field":"attribute","name":"a","op":"before","values":["20.11.2026"]}]}`:                   "rule.all[0].values[0]",
		`{"all":[{"field":"created","op":"within_days","values":["0"]}]}`:                                    "rule.all[0].values[0]",
		`{"all":[{"field":"created","op":"within_days","values":["3651"]}]}`:                                 "rule.all[0].values[0]",
		`{"all":[{"field":"reserved","op":"template","values":["0"]}]}`:                                      "rule.all[0].values[0]",
		`{"all":[{"field":"reserved","op":"template","values":["9223372036854775808"]}]}`:                    "rule.all[0].values[0]",
		`{"all":[{"field":"attribute","name":"a","op":"is","values":["` + strings.Repeat("x", 501) + `"]}]}`: "rule.all[0].values[0]",
	} {
		_, err := segment.Parse([]byte(raw))
		fields, _ := errors.AsType[*fault.Fields](err)
		switch {
		case want == "" && err != nil:
			t.Errorf("%.80s: %v", raw, err)
		case want != "" && (fields == nil || fields.List[0].Name != want):
			t.Errorf("%.80s: %v, want a complaint about %s", raw, err, want)
		}
	}
}

// Nonsense is complained about, but not without end.
func TestComplaintsAreBounded(t *testing.T) {
	r := segment.Rule{Match: segment.Any}
	for range 5000 {
		r.Rules = append(r.Rules, segment.Leaf("shoe", "", "fits"))
	}
	fields, ok := errors.AsType[*fault.Fields](r.Check())
	if !ok || len(fields.List) > 25 {
		t.Fatalf("%v", len(fields.List))
	}
}

// A rule that is written is read as the same rule.
func TestRoundTrip(t *testing.T) {
	var rule func(depth int) *rapid.Generator[segment.Rule]
	rule = func(depth int) *rapid.Generator[segment.Rule] {
		return rapid.Custom(func(t *rapid.T) segment.Rule {
			if depth > 0 && rapid.Bool().Draw(t, "group") {
				return segment.Rule{Match: rapid.SampledFrom(segment.Matches()).Draw(t, "match"), Rules: rapid.SliceOfN(rule(depth-1), 1, 3).Draw(t, "rules")}
			}
			return segment.Leaf(segment.Attribute, "a.b-c_d", segment.OneOf, rapid.SliceOfN(rapid.StringMatching(`[a-z"\\{}\[\]<>&]{1,9}`), 1, 3).Draw(t, "values")...)
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		before := rule(3).Draw(t, "rule")
		raw, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		after, err := segment.Parse(raw)
		if err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Fatalf("%s becomes %v, %v", raw, after, err)
		}
	})
}

// Parse survives any text.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"all":[{"not":{"field":"locale","op":"one_of","values":["en"]}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if r, err := segment.Parse(raw); err == nil && r.Check() != nil {
			t.Fatal("accepted against its own rules")
		}
	})
}
