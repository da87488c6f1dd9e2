package messages_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// dropFile drops the file on the element, as a browser does with a file that is dragged from a
// window of the system.
func dropFile(b *consoletest.Tab, selector, file string) {
	b.Helper()
	b.Sees(selector)
	at := consoletest.Evaluate[struct{ X, Y float64 }](b, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return {X: r.x + r.width / 2, Y: r.y + r.height / 2}; })()`, selector))
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: at.X, Y: at.Y,
				Data: &input.DragData{Items: []*input.DragDataItem{}, Files: []string{file}, DragOperationsMask: 1}})
			return chromedp.Void{}, err
		})
	}
}

// pasteFile pastes a file into the element: a browser of tests has no clipboard with files.
func pasteFile(b *consoletest.Tab, selector, name, kind, content string) {
	b.Helper()
	consoletest.Evaluate[chromedp.Void](b, fmt.Sprintf(`{ const data = new DataTransfer();
		data.items.add(new File([Uint8Array.from(atob(%q), (c) => c.charCodeAt(0))], %q, {type: %q}));
		document.querySelector(%q).dispatchEvent(new ClipboardEvent("paste", {bubbles: true, cancelable: true, clipboardData: data})); }`,
		base64.StdEncoding.EncodeToString([]byte(content)), name, kind, selector))
}

// In a browser a picture is uploaded by dropping or pasting its file: into the library, and into the
// chooser of a text, which takes its address and its description. A refusal stands beside the
// chooser, and what is no picture is left to the page.
func TestPicturesAreDroppedAndPasted(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 2*time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	file := filepath.Join(t.TempDir(), "moon cakes.png")
	if err := os.WriteFile(file, []byte(drawing(t, 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Open(g.Server.URL + "/shops/10/pictures")
	dropFile(b, "form[data-drop-picture]", file)
	b.Sees("main", "40 × 20 pixels", "Not used in any text")
	if n := g.Number(`select count(*) from pictures where alt = 'moon cakes' and name = 'moon cakes.png'`); n != 1 {
		t.Errorf("%d pictures after a drop", n)
	}
	b.Accessible("the library")

	b.Open(g.Server.URL + "/templates/1/message?channel=email")
	const chooser = `.picture-chooser[data-address="f-picture.url"]`
	consoletest.Evaluate[chromedp.Void](b, fmt.Sprintf(`document.querySelector(%q).closest("details")?.setAttribute("open", "")`, chooser))
	address := func() string { return b.Value(`[id="f-picture.url"]`) }
	pasteFile(b, chooser, "tea.png", "image/png", drawing(t, 50))
	consoletest.Within(t, "the address of the pasted picture", func() bool { return pictureAddress.MatchString(address()) })
	pasted := address()
	if alt := b.Value("#f-picture"); alt != "tea" {
		t.Errorf("the description is %q", alt)
	}
	dropFile(b, chooser, file)
	consoletest.Within(t, "the address of the dropped picture", func() bool { return pictureAddress.MatchString(address()) && address() != pasted })
	if alt := b.Value("#f-picture"); alt != "tea" {
		t.Errorf("the description that was there is now %q", alt)
	}
	kept := address()
	pasteFile(b, chooser, "broken.png", "image/png", drawing(t, 40)[:60])
	b.Sees(chooser, "cannot be read")
	pasteFile(b, chooser, "words.txt", "text/plain", "no picture")
	if n := g.Number(`select count(*) from pictures`); n != 2 || address() != kept || strings.Contains(b.Text("main"), "words.txt") {
		t.Errorf("%d pictures, the address is %q", n, address())
	}
}
