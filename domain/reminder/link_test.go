package reminder_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func TestDropLinks(t *testing.T) {
	l := reminder.NewLinks("0123456789abcdef0123456789abcdef")
	r := reminder.Reader{TemplateID: 42, UserID: 1001, Slot: 12, Channel: delivery.Email}
	// Links in sent messages must work: the form may not change.
	const known = "5cGMJgdQhmI0HoDYY-DoHTM"
	if got := l.Token(r); got != known {
		t.Errorf("token %q, want %q", got, known)
	}
	if got, err := l.Parse(known); got != r || err != nil {
		t.Errorf("%+v %v", got, err)
	}
	if got := l.Addresses("https://drop.example/")(r); got != "https://drop.example/d/"+known {
		t.Errorf("address %q", got)
	}
	for _, bad := range []string{"", "x", known[1:], known + "A", known + "==", "../" + known, strings.Repeat("A", 23), strings.Repeat("A", 34), strings.Repeat("A", 4000), "\x00\xff",
		user.NewLinks("0123456789abcdef0123456789abcdef").Token(1001, 1)} {
		if _, err := l.Parse(bad); !errors.Is(err, user.ErrLink) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	none := reminder.NewLinks(" , ")
	if none.Enabled() || none.Token(r) != "" || none.Addresses("https://drop.example") != nil {
		t.Error("links without a secret")
	}
	if _, err := none.Parse(known); !errors.Is(err, user.ErrLink) {
		t.Errorf("accepted without a secret: %v", err)
	}
}

// A token identifies exactly the reader for whom it was made, and has the same length for all
// readers with ordinary numbers. After a change of secrets, tokens of the old secret are accepted
// until it is removed. No altered token is accepted.
func TestDropLinkProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := reminder.Reader{
			TemplateID: rapid.Int64Min(1).Draw(t, "drop"), UserID: user.ID(rapid.Int64Min(1).Draw(t, "user")),
			Slot: template.Slot(rapid.IntRange(0, 12).Draw(t, "slot")), Channel: delivery.Channel(rapid.IntRange(0, delivery.Channels-1).Draw(t, "channel")),
		}
		token := reminder.NewLinks("old secret").Token(r)
		if len(token) > 34 || r.TemplateID < 1<<24 && r.UserID < 1<<40 && len(token) != 23 {
			t.Fatalf("%+v takes %d characters", r, len(token))
		}
		both := reminder.NewLinks("new secret, old secret")
		if got, err := both.Parse(token); got != r || err != nil {
			t.Fatalf("%+v %v", got, err)
		}
		if both.Token(r) == token {
			t.Fatal("made with the old secret")
		}
		if _, err := reminder.NewLinks("new secret").Parse(token); !errors.Is(err, user.ErrLink) {
			t.Fatalf("an old secret counts: %v", err)
		}
		example := both.Example("", r)
		if got, err := both.Parse(strings.TrimPrefix(example, reminder.LinkPath)); err != nil || got.UserID != 0 || got.TemplateID != r.TemplateID ||
			len(example) != len(reminder.LinkPath)+len(token) {
			t.Fatalf("the example %s leads %+v (%v)", example, got, err)
		}
		b := []byte(token)
		at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		b[at] = rapid.SampledFrom([]byte("ABCXYZabcxyz0189-_=~")).Draw(t, "letter")
		if _, err := both.Parse(string(b)); string(b) != token && !errors.Is(err, user.ErrLink) {
			t.Fatalf("altered and accepted: %v", err)
		}
	})
}

// BenchmarkDropLink measures making the link of one recipient.
func BenchmarkDropLink(b *testing.B) {
	link, r := reminder.NewLinks("0123456789abcdef0123456789abcdef").Addresses("https://drop.example"), reminder.Reader{TemplateID: 42, Slot: 12, Channel: delivery.SMS}
	for b.Loop() {
		r.UserID++
		link(r)
	}
}
