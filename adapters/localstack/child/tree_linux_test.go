package child

import "testing"

func TestParseStatSurvivesStrangeNames(t *testing.T) {
	for raw, want := range map[string]status{
		"7 (sh) S 3 7 7 0":          {7, 3, false},
		"7 (a) Z 9 (b) c) Z 3 7 7":  {7, 3, true},
		"7 ((sd-pam)) S 12 7 7 0 -": {7, 12, false},
	} {
		if got, ok := parseStat(7, []byte(raw)); !ok || got != want {
			t.Errorf("%s: %+v %v", raw, got, ok)
		}
	}
	for _, raw := range []string{"", "7", "7 (sh)", "7 (sh) S", "7 (sh) S x"} {
		if got, ok := parseStat(7, []byte(raw)); ok {
			t.Errorf("%q: %+v", raw, got)
		}
	}
}
