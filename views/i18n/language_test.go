package i18n

import (
	"slices"
	"testing"
)

// Languages have names in the language of the console; a text that is no tag is returned unchanged.
func TestNamesOfLanguages(t *testing.T) {
	l, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tag, english, chinese string }{
		{"de", "German", "德语"}, {"de-AT", "Austrian German", "奥地利德语"}, {"zh-CN", "Chinese (China)", "中文（中国）"}, {"zh-Hant", "Traditional Chinese", "繁体中文"},
		{"pt-BR", "Brazilian Portuguese", "巴西葡萄牙语"}, {"nonsense!", "nonsense!", "nonsense!"}, {"zzx", "zzx", "zzx"}, {"en-x-a", "en-x-a", "en-x-a"}, {"", "", ""},
	} {
		if en, zh := l.All()[0].LanguageName(c.tag), l.All()[1].LanguageName(c.tag); en != c.english || zh != c.chinese {
			t.Errorf("%q is %q and %q, want %q and %q", c.tag, en, zh, c.english, c.chinese)
		}
	}
	for _, loc := range l.All() {
		list := loc.LanguageNames()
		if len(list) < 150 || !slices.ContainsFunc(list, func(n Named) bool { return n.Tag == "fr" }) || !slices.ContainsFunc(list, func(n Named) bool { return n.Tag == "zh-CN" }) {
			t.Errorf("%s offers %d languages", loc.Tag, len(list))
		}
		seen := map[string]bool{}
		for _, n := range list {
			if seen[n.Tag] || n.Name == "" || n.Name == n.Tag {
				t.Errorf("%s offers %+v", loc.Tag, n)
			}
			seen[n.Tag] = true
		}
	}
	if en := l.All()[0].LanguageNames(); !slices.IsSortedFunc(en, func(a, b Named) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}) {
		t.Error("the English names are not in order")
	}
}
