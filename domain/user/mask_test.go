package user_test

import (
	"strings"
	"testing"

	"dropbell/domain/user"
)

func TestContactsAreMasked(t *testing.T) {
	u := user.User{ID: 7, Name: "Ann", Email: "mia@example.com", Phone: "+8613800138042", Attributes: map[string]any{"second": "mia.two@example.org", "tier": "gold", "age": 4.0}}
	m := u.Masked()
	if m.Email != "m…@e…" || m.Phone != "…42" || m.Name != "Ann" || m.Attributes["second"] != "m…@e…" || m.Attributes["tier"] != "gold" || m.Attributes["age"] != 4.0 {
		t.Errorf("masked: %+v", m)
	}
	if u.Attributes["second"] != "mia.two@example.org" {
		t.Error("masking changes the user")
	}
	if none := (user.User{}).Masked(); none.Email != "" || none.Phone != "" {
		t.Errorf("nothing becomes %+v", none)
	}
	for text, want := range map[string]string{
		"550 5.1.1 <mia@example.com>: no such user":   "550 5.1.1 <m…@e…>: no such user",
		"number +86 138 0013 8042 is not in service":  "number …42 is not in service",
		"batch 8613800138042 of template 17 at 12:30": "batch 8613800138042 of template 17 at 12:30",
		"用户@例子.中国 拒收":                                 "用…@例… 拒收",
		"a@b,c@d":                                     "a…@b…,c…@d…",
		"":                                            "",
		"+1":                                          "+1",
		strings.Repeat("x", 300) + "@" + "example.com": "x…@e…",
	} {
		if got := user.MaskText(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for _, odd := range []string{"", "@", "a", "\xff@\xff"} {
		user.MaskEmail(odd)
		user.MaskPhone(odd)
	}
}
