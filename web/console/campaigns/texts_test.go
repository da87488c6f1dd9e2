package campaigns_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	"dropbell/web/console/consoletest"
)

var frames = regexp.MustCompile(`<iframe src="([^"]+)"`)

// The previews show the texts for a made-up person, a user, or a reader of a language: mails on a
// desktop, on a phone and in dark mode with the campaign's own link, and an SMS with its size and
// price.
func TestPreviewsOfACampaign(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 4*time.Hour)
	g.Exec(`update shops set claim_url = 'https://shop.example/{id}'`)
	g.Exec(`insert into users (id, name, locale, timezone) values (1001, 'Jürg', 'de-CH', 'Europe/Zurich')`)
	b := g.As(staff.Marketer)
	form := consoletest.CampaignForm("look", "1", "channel", "email", "shop", "10", "grant_template_id", fmt.Sprint(d.ID), "body", "**Come** to {{shop}}: {{link}}")
	language(form, "0", "de", "Hallo {{name|du}}", "Bis {{ends_at}}")
	language(form, "1", "fr", "Salut {{name}}", "Viens")
	a := b.Post("/campaigns", form).Is(200).Has("Hello Robin Chen", "Hallo Robin Chen", "Salut Robin Chen", "As it reads for Robin Chen.", "write {{user|there}}")
	found := frames.FindAllStringSubmatch(a.Body, -1)
	if len(found) != 9 {
		t.Fatalf("%d frames", len(found))
	}
	link := "https://drop.example/l/" + strings.Repeat("A", 46)
	light, dark := b.Get(html.UnescapeString(found[0][1])).Is(200), b.Get(html.UnescapeString(found[2][1])).Is(200)
	light.Has("<strong>Come</strong> to Shop 10", link, "Have a look", "@media not all")
	dark.Has("@media all")
	form.Set("preview_user", "1001")
	b.Post("/campaigns/preview", form).Is(200).Has("As it reads for Jürg #1001.", "Hallo Jürg").HasNot("Hello Jürg", "Salut Jürg")
	form.Set("preview_language", "it")
	b.Post("/campaigns/preview", form).Is(200).Has("Hello Jürg").HasNot("Hallo Jürg", "Salut Jürg")
	form.Set("preview_language", "no tag")
	form.Set("preview_user", "somebody else")
	b.Post("/campaigns/preview", form).Is(200).Has(`data-for="f-preview_language"`, `data-for="f-preview_user"`, "Salut Robin Chen")
	form.Del("look")
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location") // the choice of a reader is not part of it
	b.Get(page+"?preview_language=fr-CA").Is(200).Has("Salut Robin Chen", "Only the text that this reader gets is shown.").HasNot("Hallo", "Hello")
	b.Get(page+"?preview_language=x").Is(200).Has("must be a language tag", "Hallo")

	g.Exec(`insert into message_versions (shop_number, kind, content, created_by) values (10, 'settings', '{"shop": {"part_price": 450, "currency": "CNY"}}', 'x')`)
	form = consoletest.CampaignForm("look", "1", "channel", "sms", "shop", "10", "grant_template_id", fmt.Sprint(d.ID), "body", "Tea: {{link}}")
	b.Post("/campaigns", form).Is(200).Has(link, "74 characters, parts: 1 · about 0.045 CNY", "Text messages: about").HasNot("about 0.045 CNY at most")
	g.Exec(`update users set phone = '+8613800001001', phone_verified_at = now() where id = 1001`)
	b.Post("/campaigns", form).Is(200).Has("Text messages: about 0.045 CNY at most.")
	g.Exec(`insert into users (id) values (1002)`)
	store := g.Campaigns.Store
	g.Campaigns.Store = unsampled{store}
	b.Post("/campaigns", form).Is(200).Has("Text messages: about 0.09 CNY at most.") // as many as can be reached
	g.Campaigns.Store = store
	mail := consoletest.CampaignForm("look", "1", "channel", "email") // of no shop
	a = b.Post("/campaigns", mail).Is(200)
	b.Get(html.UnescapeString(frames.FindStringSubmatch(a.Body)[1])).Is(200).Has("Hello Robin Chen", "Come").HasNot("Have a look", "Corner shop")
	mail.Set("body", letters(4000))
	b.Post("/campaigns", mail).Is(200).Has("This e-mail is too long for a preview")
}

// unsampled has no estimate of the verified numbers.
type unsampled struct{ campaign.Store }

func (unsampled) EstimateContact(context.Context, campaign.Audience, string) (int64, error) {
	return 0, audiencedb.ErrNoEstimate
}

// letters is a text of n characters that cannot be packed small.
func letters(n int) string {
	text, x := make([]rune, n), uint32(1)
	for i := range text {
		x = x*1664525 + 1013904223
		text[i] = rune('一' + x>>16%20000)
	}
	return string(text)
}

// Each text of a campaign is sent to the member with one click, from the typed form and from the
// page of the campaign. The limits and the audit entry of test messages apply.
func TestSendingACampaignToMe(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 4*time.Hour)
	g.Exec(`update shops set claim_url = 'https://shop.example/{id}'`)
	b := g.As(staff.Marketer, 10)
	form := consoletest.CampaignForm("channel", "email", "shop", "10", "grant_template_id", fmt.Sprint(d.ID), "body", "**Now** {{link}}")
	language(form, "0", "de", "Hallo {{name|du}}", "Komm zu {{shop}}")
	form.Set("send", "0:de")
	b.Post("/campaigns", form).Is(200).Has("The message is on its way to", `value="0:de"`, "Komm zu {{shop}}")
	var got []delivery.Message
	tester := &testmessage.Tester{Store: g.Stores.ChannelTests, Now: g.Now, Senders: map[delivery.Channel]delivery.Sender{
		delivery.Email: consoletest.NewProvider(delivery.Email, func(m delivery.Message) delivery.Result {
			got = append(got, m)
			return delivery.Result{Status: delivery.Delivered}
		})}}
	g.Must(tester.Sweep(t.Context()))
	if len(got) != 1 || got[0].Content.Title != "Hallo du" || !strings.Contains(got[0].Content.HTML, "Komm zu Shop 10") || got[0].Subject.Kind != delivery.KindTest {
		t.Fatalf("sent %+v", got)
	}
	if n := g.Number(`select count(*) from campaigns`); n != 0 {
		t.Error("sending stored the campaign")
	}

	form.Set("send", "0:fr")
	b.Post("/campaigns", form).Is(200).Has("This text is no longer there.")
	form.Set("send", "0:")
	form.Set("title", "Two {{lines")
	b.Post("/campaigns", form).Is(200).Has("Title: line 1")
	form.Del("send")
	form.Set("title", "Soon")
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(page).Is(200).Has(page+"/send", "“Send to me” goes to", `value="0:"`)
	// A worker that answers at once.
	g.Exec(`create function answered() returns trigger language plpgsql as $$ begin new.state := 'done'; new.result := 'permanent'; new.detail := 'mailbox full'; return new; end $$`)
	g.Exec(`create trigger answered before insert on channel_tests for each row execute function answered()`)
	b.Post(page+"/send", url.Values{"send": {"0:"}, "preview_language": {"it"}}).To(page + "?preview_language=it#message")
	b.Get(page).Is(200).Has("was not sent. The provider says: mailbox full")
	g.Exec(`drop trigger answered on channel_tests`)
	b.Post(page+"/send", url.Values{"send": {"1:"}}).To(page + "#message")
	b.Get(page).Is(200).Has("This text is no longer there.")
	b.Post(page+"/send", url.Values{"send": {"0:"}}).To(page + "#message")
	got = nil
	g.Must(tester.Sweep(t.Context()))
	if len(got) != 1 || got[0].Content.Title != "Soon" || !strings.Contains(got[0].Content.HTML, "https://shop.example/"+fmt.Sprint(d.ID)) {
		t.Errorf("sent %+v", got)
	}
	g.Exec(`insert into channel_tests (channel, recipient, by_user, due_at, state, created_by, created_at)
		select t.channel, '', t.by_user, t.due_at, 'done', t.created_by, clock_timestamp() + interval '1 hour' from generate_series(1, $1::int), (select * from channel_tests limit 1) t`, testmessage.TestsPerMember)
	b.Post(page+"/send", url.Values{"send": {"0:"}}).Is(http.StatusSeeOther)
	b.Get(page).Is(200).Has("Too many test messages")
	b.Get("/audit?kind=channel").Is(http.StatusOK)
	if n := g.Number(`select count(*) from audit where action = 'message.test' and shop_number = 10 and after ->> 'kind' = 'campaign'`); n != 3 {
		t.Errorf("%d audit entries", n)
	}

	edit := b.Get(page + "/edit").Is(200).Form(page + "/edit")
	b.Post("/campaigns/preview", edit).Is(200).Has(`formaction="` + page + `/edit"`).HasNot(`formaction="/campaigns"`)
	g.Plan("Of no shop", 0, "2031-01-01")
	ofNone := fmt.Sprintf("/campaigns/%d", g.Number(`select max(id) from campaigns`))
	b.Get(ofNone).Is(200).HasNot(ofNone + "/send")
	g.As(staff.Marketer).Get(ofNone).Is(200).Has(ofNone + "/send")
	form.Set("shop", "")
	form.Del("grant_template_id")
	form.Set("send", "0:")
	b.Post("/campaigns", form).Is(200).Has("Choose one of your shops first")
	g.As(staff.Viewer).Get(page).Is(200).HasNot(page + "/send")
	g.As(staff.Viewer).Post(page+"/send", url.Values{"send": {"0:"}}).Is(http.StatusForbidden)
	g.As(staff.Marketer, 11).Post(page+"/send", url.Values{"send": {"0:"}}).Is(http.StatusForbidden)
	other := g.As(staff.Marketer)
	form.Set("channel", "app")
	other.Post("/campaigns", form).Is(200).Has("In the app customers see what the preview shows.", "The app channel has no provider to test.")
}
