package delivery

import (
	"fmt"
	"strings"
	"testing"

	"dropbell/domain/user"
)

// Every reader gets a link of their own, in the text as in the mail's button,
// and never another's, however alike they are.
func TestTrackedLinksAreNotShared(t *testing.T) {
	c := Copy{Variants: []Variant{{Percent: 100, Texts: map[string]Text{"": {Title: "Come", Body: "See {{link}}"}}}}}
	s := Subject{Kind: KindCampaign, OwnerID: 5, Copy: &c, ClaimURL: "https://shop.example/c",
		Track: func(id user.ID, variant int) string { return fmt.Sprintf("https://drop.example/l/%s-%d", id, variant) }}
	r := NewRenderer(s)
	for _, id := range []user.ID{1, 2, 1} {
		want := fmt.Sprintf("https://drop.example/l/%s-0", id)
		u := user.User{ID: id}
		got := r.For(u)
		if got.Text != "See "+want || !strings.Contains(got.HTML, `href="`+want+`"`) || strings.Contains(got.HTML, s.ClaimURL) {
			t.Errorf("user %d reads %q\n%s", id, got.Text, got.HTML)
		}
		if m := (Message{To: &u, Subject: &s}); m.Link() != want {
			t.Errorf("user %d is led to %s", id, m.Link())
		}
	}
	for _, url := range []string{"", "javascript:alert(1)"} {
		s.ClaimURL = url
		if got := NewRenderer(s).For(user.User{ID: 1}); got.Text != "See" {
			t.Errorf("%q is led to: %q", url, got.Text)
		}
	}
	s.ClaimURL, s.Track = "https://shop.example/c", nil
	if got := NewRenderer(s).For(user.User{ID: 1}); got.Text != "See https://shop.example/c" {
		t.Errorf("untracked: %q", got.Text)
	}
}
