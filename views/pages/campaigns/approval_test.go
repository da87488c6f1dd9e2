package campaigns

import "testing"

// Differences between two texts begin and end at the ends of words.
func TestParted(t *testing.T) {
	for _, c := range [][6]string{
		{"Come by", "Come by", "Come by", "", "", ""},
		{"Everything is 10 % off", "Everything is 20 % off", "Everything is ", "10", "20", " % off"},
		{"Come", "Come and pay nothing", "Come", "", " and pay nothing", ""},
		{"spring", "springs", "", "spring", "springs", ""},
		{"", "new", "", "", "new", ""},
		{"old", "", "", "old", "", ""},
		{"本周全场八折", "本周全场七折", "本周全场", "八", "七", "折"},
		{"aaa", "aa", "", "aaa", "aa", ""},
		{"a b a", "a b a b a", "a b a", "", " b a", ""},
	} {
		head, gone, come, tail := parted(c[0], c[1])
		if got := [6]string{c[0], c[1], head, gone, come, tail}; got != c {
			t.Errorf("%q", got)
		}
		if head+gone+tail != c[0] || head+come+tail != c[1] {
			t.Errorf("%q is not %q and %q", [4]string{head, gone, come, tail}, c[0], c[1])
		}
	}
}
