package drops

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"dropbell/domain/forecast"
	"dropbell/domain/message"
	"dropbell/domain/template"
	"dropbell/web/console/shell"
)

// textSamples counts its reads, and fails if the test says so.
type textSamples struct {
	read int
	err  error
}

func (s *textSamples) TextSample(context.Context, int64, int) (forecast.TextSample, error) {
	s.read++
	return forecast.TextSample{Days: []forecast.TextDay{{Messages: 1, All: 1}}, Readers: []forecast.TextReader{{Phone: "+8613800138000", Messages: 1}}}, s.err
}

func (s *textSamples) Book(context.Context, message.Place, int64) (*message.Book, error) {
	return message.NewBook(nil), nil
}

// Every viewer reads the page of a drop every second, but its cost is read once a minute. If the
// cost cannot be estimated, only the card with the cost is missing.
func TestTextCostsAreReadOnce(t *testing.T) {
	s := &textSamples{}
	h := newHandlers(&shell.Shell{Log: slog.New(slog.DiscardHandler)}, Deps{Reminders: Reminders{
		TextCosts: &forecast.TextCosts{Store: s, Texts: s, Country: func(string) string { return "CN" }}}})
	drop := template.Template{ID: 7, Version: 1}
	for range 5 {
		if c := h.texts.get(t.Context(), drop); c == nil || c.Messages != 1 {
			t.Fatalf("%+v", c)
		}
	}
	if s.read != 1 {
		t.Errorf("it was read %d times", s.read)
	}
	s.err = errors.New("the database takes too long")
	drop.Version++
	for range 5 {
		if c := h.texts.get(t.Context(), drop); c != nil {
			t.Errorf("%+v", c)
		}
	}
	if s.read != 2 {
		t.Errorf("it was read %d times", s.read)
	}
}
