package campaigns_test

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// Templates are chosen by their names; numbers work as well.
func TestCampaignForATemplateByName(t *testing.T) {
	g := consoletest.New(t)
	tea, cake := g.Published(10, 4*time.Hour), g.Published(11, 5*time.Hour)
	g.Exec(`update templates set name = 'Tea & more (#7)' where id = $1`, tea.ID)
	b, limited := g.As(staff.Marketer), g.As(staff.Marketer, 11)

	name := fmt.Sprintf("Tea & more (#7) (#%d)", tea.ID)
	offered := `<option value="` + html.EscapeString(name) + `"`
	for _, typed := range []string{"q=tea", "q=", "audience_template=TEA", "grant_template_id=" + fmt.Sprint(tea.ID), "grant_template_id=Tea+%26+more+(%237)+(%23" + fmt.Sprint(tea.ID) + ")"} {
		b.Get("/templates/choices?" + typed).Is(200).Has(offered)
	}
	b.Get("/templates/choices?q=nothing+like+it").Is(200).HasNot("<option")
	limited.Get("/templates/choices?q=tea").Is(200).HasNot("<option")
	limited.Get("/templates/choices?q=" + fmt.Sprint(tea.ID)).Is(200).HasNot("Tea")
	if body := limited.Get("/templates/choices?q=" + fmt.Sprint(cake.ID)).Is(200).Body; strings.Count(body, "<option") != 1 {
		t.Errorf("one's own by number: %s", body)
	}

	form := consoletest.CampaignForm("audience", "reserved_template_id", "audience_template", name, "grant_template_id", fmt.Sprintf("#%d", tea.ID))
	b.Post("/campaigns/preview", form).Is(200).HasNot("data-for").Has("Tea &amp; more (#7) (#1)")
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	if n := g.Number(`select count(*) from campaigns where grant_template_id = $1 and audience->>'id' = $2`, tea.ID, fmt.Sprint(tea.ID)); n != 1 {
		t.Error("it is not for this template")
	}
	a := b.Get(page + "/edit").Is(200)
	if a.Field("audience_template") != html.EscapeString(name) || a.Field("grant_template_id") != html.EscapeString(name) {
		t.Errorf("the form shows %q and %q", a.Field("audience_template"), a.Field("grant_template_id"))
	}
	form = consoletest.CampaignForm("audience", "holds_template_id", "audience_template", "cake", "grant_template_id", "tea")
	b.Post("/campaigns", form).Is(http.StatusUnprocessableEntity).Has(`value="cake"`, `value="tea"`,
		"Which drop : choose a drop from the names offered", "Give a coupon of the drop : choose a drop")
	form = consoletest.CampaignForm("audience", "holds_template_id")
	b.Post("/campaigns/preview", form).Is(200).Has(`data-for="f-audience_template"`).HasNot(`data-for="f-audience_value"`)
}

// An error in a campaign is shown at the field where it is typed.
func TestCampaignFormNamesWhatIsWrong(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	b.Post("/campaigns", consoletest.CampaignForm("audience", "user_ids", "audience_value", "1001, 10x2 <b>")).Is(http.StatusUnprocessableEntity).Has("Numbers of customers : “10x2” is not a number")
	past := consoletest.CampaignForm()
	past.Set("starts_at", g.Now().Add(-48*time.Hour).Format("2006-01-02T15:04"))
	past.Set("ends_at", g.Now().Add(-24*time.Hour).Format("2006-01-02T15:04"))
	b.Post("/campaigns/preview", past).Is(200).Has(`data-for="f-ends_at"`, "must lie in the future", "at once, when it is published")
	b.Post("/campaigns", past).Is(http.StatusUnprocessableEntity).Has("Ends : must lie in the future", "without a shop in Beijing time")
	past.Set("ends_at", g.Now().Add(24*time.Hour).Format("2006-01-02T15:04"))
	page := b.Post("/campaigns", past).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(page + "/publish").Is(200).Has("It starts at once.").HasNot("It starts by itself")
	b.Get("/campaigns/new").Is(200).Has(`data-audiences="user_ids segment_id list_id"`, `data-audiences="reserved_template_id holds_template_id"`)
}
