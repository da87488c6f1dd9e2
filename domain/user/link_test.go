package user_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/user"
)

func TestLinks(t *testing.T) {
	l := user.NewLinks("0123456789abcdef0123456789abcdef")
	// Links in sent messages must work for ever: the form may not change.
	const known = "AQEAAAAAAAAD6UtYZWoPsA0glCgeUcX-ggY"
	if got := l.Token(1001, 1); got != known {
		t.Errorf("token %q, want %q", got, known)
	}
	if id, channel, err := l.Parse(known); id != 1001 || channel != 1 || err != nil {
		t.Errorf("%d %d %v", id, channel, err)
	}
	for _, bad := range []string{"", "x", known[1:], known + "A", known + "==", "AQEAAAAAAAAD6UtYZWoPsA0glCgeUcX-ggZ", "../" + known, "\x00\xff"} {
		if _, _, err := l.Parse(bad); !errors.Is(err, user.ErrLink) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if none := user.NewLinks(" , "); none.Enabled() || none.Token(1, 1) != "" {
		t.Error("links without a secret")
	}
	if _, _, err := (user.Links{}).Parse(known); !errors.Is(err, user.ErrLink) {
		t.Errorf("accepted without a secret: %v", err)
	}
}

// A token names exactly the user and channel that it was made for. After a change
// of secrets a token of the old secret is valid until that secret is removed. No
// altered token is valid.
func TestLinkProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, channel := user.ID(rapid.Int64Min(1).Draw(t, "id")), rapid.Uint8().Draw(t, "channel")
		token := user.NewLinks("old secret").Token(id, channel)
		both := user.NewLinks("new secret, old secret")
		if gotID, gotChannel, err := both.Parse(token); gotID != id || gotChannel != channel || err != nil {
			t.Fatalf("%d %d %v", gotID, gotChannel, err)
		}
		if both.Token(id, channel) == token {
			t.Fatal("signed with the old secret")
		}
		if _, _, err := user.NewLinks("new secret").Parse(token); !errors.Is(err, user.ErrLink) {
			t.Fatalf("an old secret counts: %v", err)
		}
		b := []byte(token)
		at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		b[at] = rapid.SampledFrom([]byte("ABCXYZabcxyz0189-_=~")).Draw(t, "letter")
		if _, _, err := both.Parse(string(b)); string(b) != token && !errors.Is(err, user.ErrLink) {
			t.Fatalf("altered and accepted: %v", err)
		}
	})
}
