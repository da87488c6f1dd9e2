package lookup_test

import (
	"context"
	"testing"

	"dropbell/adapters/lookup"
	"dropbell/domain/message"
	"dropbell/musttest"
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
	musttest.OK(t, err)
	compiled := func(shop, drop int64) *message.Compiled {
		b, err := books.Book(t.Context(), message.Place{Shop: shop, Template: drop}, 9)
		musttest.OK(t, err)
		return b.Compiled(message.Reminder, message.Email, "en")
	}
	if compiled(10, 1) != compiled(10, 2) || compiled(20, 7) != compiled(30, 8) {
		t.Error("equal texts were compiled twice")
	}
	if compiled(10, 1) == compiled(10, 3) || compiled(10, 1) == compiled(20, 7) || compiled(10, 3) == compiled(20, 7) {
		t.Error("different texts are shared")
	}
}

// TestTextsOfManyShopsCompileOnce: each of 300 shops has texts of its own, and a drop at every
// hour. The drops of the next hour share the compiled texts of the hour before.
func TestTextsOfManyShopsCompileOnce(t *testing.T) {
	const shops = 300
	places := versions{}
	for shop := range int64(shops) {
		own := message.Version{ID: shop + 1, Shop: shop + 1, Key: message.Key{Kind: message.Reminder, Channel: message.Email, Language: "en"},
			Text: &message.Text{Title: "The shop's", Blocks: []message.Block{{Type: message.Heading, Text: "The shop's"}}}}
		for hour := range int64(2) {
			places[message.Place{Shop: shop + 1, Template: hour*shops + shop + 1}] = []message.Version{own}
		}
	}
	books, err := lookup.NewBooks(places)
	musttest.OK(t, err)
	compiled := map[*message.Compiled]bool{}
	for hour := range int64(2) {
		for shop := range int64(shops) {
			b, err := books.Book(t.Context(), message.Place{Shop: shop + 1, Template: hour*shops + shop + 1}, shops)
			musttest.OK(t, err)
			compiled[b.Compiled(message.Reminder, message.Email, "en")] = true
		}
	}
	if len(compiled) != shops {
		t.Errorf("the texts of %d shops were compiled %d times", shops, len(compiled))
	}
}
