package lookup_test

import (
	"context"
	"testing"

	"dropbell/adapters/lookup"
	"dropbell/domain/message"
)

type versions map[message.Place][]message.Version

func (v versions) Current(_ context.Context, p message.Place, _ int64) ([]message.Version, error) {
	return v[p], nil
}

// TestBooksOfEqualVersionsCompileOnce: drops without texts of their own share the compiled texts
// of the shop, or the compiled built-in texts. A drop with a text of its own shares no compiled
// text.
func TestBooksOfEqualVersionsCompileOnce(t *testing.T) {
	text := func(id int64, shop, drop int64, title string) message.Version {
		return message.Version{ID: id, Shop: shop, Template: drop, Key: message.Key{Kind: message.Reminder, Channel: message.Email, Language: "en"},
			Text: &message.Text{Title: title, Blocks: []message.Block{{Type: message.Heading, Text: title}}}}
	}
	shops := text(1, 10, 0, "The shop's")
	places := versions{
		{Shop: 10, Template: 1}: {shops}, {Shop: 10, Template: 2}: {shops}, {Shop: 10, Template: 3}: {shops, text(2, 10, 3, "Its own")},
	}
	books, err := lookup.NewBooks(places)
	if err != nil {
		t.Fatal(err)
	}
	compiled := func(shop, drop int64) *message.Compiled {
		b, err := books.Book(t.Context(), message.Place{Shop: shop, Template: drop}, 9)
		if err != nil {
			t.Fatal(err)
		}
		return b.Compiled(message.Reminder, message.Email, "en")
	}
	if compiled(10, 1) != compiled(10, 2) || compiled(20, 7) != compiled(30, 8) {
		t.Error("equal texts were compiled twice")
	}
	if compiled(10, 1) == compiled(10, 3) || compiled(10, 1) == compiled(20, 7) || compiled(10, 3) == compiled(20, 7) {
		t.Error("different texts are shared")
	}
}
