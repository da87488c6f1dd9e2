package consoletest_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"dropbell/views/stories"
	"dropbell/web/console/consoletest"
)

// chosenStories are all of them, or, for who works on a page, those whose name
// begins as DROPBELL_TEST_STORIES says.
func chosenStories(t *testing.T) []stories.Story {
	only := os.Getenv("DROPBELL_TEST_STORIES")
	if only == "" {
		return stories.All()
	}
	list := slices.DeleteFunc(stories.All(), func(s stories.Story) bool { return !strings.HasPrefix(s.Name, only) })
	t.Logf("DROPBELL_TEST_STORIES: only %d stories", len(list))
	if len(list) == 0 {
		t.Fatal("no story begins like that")
	}
	return list
}

// Every page in every state: nothing blocked and nothing inaccessible in
// either theme and language, nothing wider than a phone in either language.
// Contrast depends on the theme and width on the language, so not every theme
// is looked at in every language, nor every rule in every look.
func TestEveryPageInTheBrowser(t *testing.T) {
	book, err := stories.NewBook()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(book.Handler())
	t.Cleanup(server.Close)
	const perTab = 60
	for _, look := range []struct {
		stories.Look
		rules  func(b *consoletest.Tab, what string)
		narrow bool
	}{
		{stories.Look{Theme: "light", Locale: "en"}, (*consoletest.Tab).Accessible, true},
		{stories.Look{Theme: "dark", Locale: "zh-CN"}, (*consoletest.Tab).Dressed, true},
	} {
		for i, some := range slices.Collect(slices.Chunk(chosenStories(t), perTab)) {
			t.Run(fmt.Sprint(look.Theme, " ", look.Locale, " ", i), func(t *testing.T) {
				t.Parallel()
				b := consoletest.NewTab(t)
				for _, s := range some {
					what := s.Name + " " + look.Theme + " " + look.Locale
					b.Open(server.URL + s.Path(look.Look))
					look.rules(b, what)
					if !look.narrow {
						continue
					}
					b.Do(chromedp.EmulateViewport(390, 844))
					b.Narrow(what)
					b.Do(chromedp.EmulateViewport(320, 700))
					b.Narrow(what + " on a small phone")
					b.Do(chromedp.EmulateViewport(1280, 800))
				}
			})
		}
	}
}
