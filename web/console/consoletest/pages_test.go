package consoletest_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"dropbell/views/stories"
	"dropbell/web/console/consoletest"
)

// chosenStories returns all stories. For work on one page, DROPBELL_TEST_STORIES selects the
// stories whose name begins with its value.
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

// Every page in every state: no blocked resource, no accessibility violation, nothing wider than a
// phone, and no two boxes that touch. A page is opened in one theme and language, with all rules,
// and then becomes its look in the other theme and language, with the rules that depend on them: on
// a phone in each state, on a desktop in the first state of each page.
//
// As many tabs are open at a time as there are processors. With several tabs the browser begins a
// process for each page, which takes an eighth more processor time. With one tab this package would
// end last by minutes.
func TestEveryPageInTheBrowser(t *testing.T) {
	book, err := stories.NewBook()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(book.Handler())
	t.Cleanup(server.Close)
	firstOfPage, pages := map[string]bool{}, map[string]bool{}
	for _, s := range stories.All() {
		page, _, _ := strings.Cut(s.Name, "/")
		firstOfPage[s.Name] = !pages[page]
		pages[page] = true
	}
	const perTab = 60
	for i, some := range slices.Collect(slices.Chunk(chosenStories(t), perTab)) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			b := consoletest.NewTab(t)
			b.Hidden()
			for _, s := range some {
				inspect(b, s.Name, server.URL+s.Path(stories.Look{Theme: "light", Locale: "en"}),
					server.URL+s.Path(stories.Look{Theme: "dark", Locale: "zh-CN"}), firstOfPage[s.Name])
			}
		})
	}
}

// inspect checks a page, given by its address in each look, and leaves the tab at desktop width.
func inspect(b *consoletest.Tab, name, light, dark string, firstOfPage bool) {
	b.Helper()
	b.Open(light)
	b.Accessible(name + " light en")
	narrow(b, name+" light en", 390, 320)
	if !b.Becomes(dark) {
		b.Open(dark)
	}
	narrow(b, name+" dark zh-CN", 320, 390)
	b.Resize(390, 8000) // so tall that no bar at its end covers anything
	b.DressedOnAPhone(name + " dark zh-CN at 390 pixels")
	b.High(name + " dark zh-CN at 390 pixels")
	b.Resize(1280, 800)
	b.Spaced(name + " dark zh-CN")
	if firstOfPage {
		b.Dressed(name + " dark zh-CN")
	}
}

// narrow fails if the page is wider than phones of these widths.
func narrow(b *consoletest.Tab, what string, widths ...int64) {
	b.Helper()
	for _, width := range widths {
		b.Resize(width, 2*width)
		b.Narrow(fmt.Sprintf("%s at %d pixels", what, width))
	}
}
