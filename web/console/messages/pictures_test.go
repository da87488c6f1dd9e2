package messages_test

import (
	"bytes"
	"html"
	"image"
	"image/png"
	"regexp"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

func drawing(t *testing.T, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, width, 20))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var pictureAddress = regexp.MustCompile(`/pictures/10/([0-9a-f]{64})\.png`)

// Without scripts: a picture is uploaded by a form, chosen for the logo and for a block of a mail,
// and deleted once no text has it.
func TestPictures(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 2*time.Hour)
	b, library, page := g.As(staff.Marketer), "/shops/10/pictures", "/shops/10/message"
	b.Get(library).Is(200).Has("No pictures yet")
	for content, want := range map[string]string{"": "choose a picture", "<svg/>": "must be a picture of the type", drawing(t, 40)[:60]: "cannot be read", strings.Repeat("x", 10<<20+1): "must have at most 10 MB"} {
		b.Upload(library, "x.png", content, "alt", "Tea").Is(422).Has(want)
	}
	b.Upload(library, "x.png", drawing(t, 40), "alt", " ").Is(422).Has("say what the picture shows")
	b.Upload(library, "x.png", drawing(t, 40), "alt", "Moon cakes").To(library)
	shown := b.Get(library).Is(200).Has("Moon cakes", "40 × 20 pixels", "Not used in any text")
	hash := pictureAddress.FindStringSubmatch(shown.Body)[1]
	address := "https://drop.example/pictures/10/" + hash + ".png"

	b.Get(page).Is(200).Has(address)
	b.Post(page, form("do", "settings", "logo_picture", address)).To(page + "?kind=reminder&language=en")
	b.Get(page).Is(200).Has(`value="` + address + `"`)
	b.Get(library).Is(200).Has("Messages of the shop")
	b.Post(library+"/"+hash, form("do", "delete")).To(library)
	b.Get(library).Is(200).Has("Take it out of the texts first", "Moon cakes")
	b.Post(library+"/"+hash, form("do", "describe", "alt", "Two moon cakes")).To(library)
	b.Post(page, form("do", "look", "email_title", "a", "email_b0_type", "image", "email_b0_picture", address)).Is(200).Has(`value="`+address+`"`, "Two moon cakes")
	b.Post(page, form("do", "settings", "settings_based_on", "1", "logo", "")).To(page + "?kind=reminder&language=en")
	b.Post(library+"/"+hash, form("do", "delete")).To(library)
	b.Get(library).Is(200).Has("No pictures yet")

	// The picture of a drop's coupon.
	const drop = "/templates/1/message"
	b.Post(drop, form("do", "picture", "picture_url", "x", "picture", "")).Is(422).Has("must be an https address")
	b.Post(drop, form("do", "picture", "picture_url", "https://shop.example/c.png", "picture", "A coupon")).To(drop + "?kind=reminder&language=en")
	shown = b.Get(drop).Is(200).Has(`value="https://shop.example/c.png"`)
	b.Get(html.UnescapeString(frames.FindStringSubmatch(shown.Body)[1])).Is(200).Has(`src="https://shop.example/c.png"`)
	b.Post(drop, form("do", "picture", "picture_url", "")).To(drop + "?kind=reminder&language=en")

	// Scripts get JSON.
	b.Header.Set("Accept", "application/json")
	if a := b.Upload(library, "x.png", drawing(t, 50), "alt", "Tea"); a.Status != 201 || !strings.Contains(a.Body, `"address":"https://drop.example/pictures/10/`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	b.Upload(library, "x.png", "no picture", "alt", "Tea").Is(422).Has(`{"error":"Picture: must be a picture of the type`)
	g.As(staff.Viewer).Upload(library, "x.png", drawing(t, 50), "alt", "Tea").Is(403)
}
