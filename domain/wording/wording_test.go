package wording

import "testing"

func TestOneLine(t *testing.T) {
	for s, want := range map[string]bool{"": true, "Lin Mei 林": true, "a\nb": false, "a\x00": false, "a\u007f": false,
		"a\u202eb": false, "a\u2066b": false, "\xff": false} {
		if got := OneLine(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}
