package console

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
)

// Templates are chosen by their names; numbers work as well.
func TestCampaignForATemplateByName(t *testing.T) {
	g := newRig(t)
	tea, cake := g.published(10, 4*time.Hour), g.published(11, 5*time.Hour)
	g.exec(`update templates set name = 'Tea & more (#7)' where id = $1`, tea.ID)
	b, limited := g.as(staff.Marketer), g.as(staff.Marketer, 11)

	name := fmt.Sprintf("Tea & more (#7) (#%d)", tea.ID)
	offered := `<option value="` + html.EscapeString(name) + `"`
	for _, typed := range []string{"q=tea", "q=", "audience_template=TEA", "grant_template_id=" + fmt.Sprint(tea.ID), "grant_template_id=Tea+%26+more+(%237)+(%23" + fmt.Sprint(tea.ID) + ")"} {
		b.get("/templates/choices?" + typed).is(200).has(offered)
	}
	b.get("/templates/choices?q=nothing+like+it").is(200).hasNot("<option")
	limited.get("/templates/choices?q=tea").is(200).hasNot("<option")
	limited.get("/templates/choices?q=" + fmt.Sprint(tea.ID)).is(200).hasNot("Tea")
	if body := limited.get("/templates/choices?q=" + fmt.Sprint(cake.ID)).is(200).body; strings.Count(body, "<option") != 1 {
		t.Errorf("one's own by number: %s", body)
	}

	form := campaignForm("audience", "reserved_template_id", "audience_template", name, "grant_template_id", fmt.Sprintf("#%d", tea.ID))
	b.post("/campaigns/preview", form).is(200).hasNot("data-for").has("Tea &amp; more (#7) (#1)")
	page := b.post("/campaigns", form).is(http.StatusSeeOther).header.Get("Location")
	if n := g.number(`select count(*) from campaigns where grant_template_id = $1 and audience->>'id' = $2`, tea.ID, fmt.Sprint(tea.ID)); n != 1 {
		t.Error("it is not for this template")
	}
	a := b.get(page + "/edit").is(200)
	if a.field("audience_template") != html.EscapeString(name) || a.field("grant_template_id") != html.EscapeString(name) {
		t.Errorf("the form shows %q and %q", a.field("audience_template"), a.field("grant_template_id"))
	}
	form = campaignForm("audience", "holds_template_id", "audience_template", "cake", "grant_template_id", "tea")
	b.post("/campaigns", form).is(http.StatusUnprocessableEntity).has(`value="cake"`, `value="tea"`,
		"Which template : choose a template from the names offered", "Give a coupon of template : choose a template")
	form = campaignForm("audience", "holds_template_id")
	b.post("/campaigns/preview", form).is(200).has(`data-for="f-audience_template"`).hasNot(`data-for="f-audience_value"`)
}

// What is wrong with a campaign is said where it is typed.
func TestCampaignFormNamesWhatIsWrong(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	b.post("/campaigns", campaignForm("audience", "user_ids", "audience_value", "1001, 10x2 <b>")).is(http.StatusUnprocessableEntity).has("Which ones : “10x2” is not a number")
	past := campaignForm()
	past.Set("starts_at", g.now().Add(-48*time.Hour).Format("2006-01-02T15:04"))
	past.Set("ends_at", g.now().Add(-24*time.Hour).Format("2006-01-02T15:04"))
	b.post("/campaigns/preview", past).is(200).has(`data-for="f-ends_at"`, "must lie in the future", "at once, when it is published")
	b.post("/campaigns", past).is(http.StatusUnprocessableEntity).has("Ends : must lie in the future", "without a shop in CST (UTC+8)")
	past.Set("ends_at", g.now().Add(24*time.Hour).Format("2006-01-02T15:04"))
	page := b.post("/campaigns", past).is(http.StatusSeeOther).header.Get("Location")
	b.get(page + "/publish").is(200).has("It starts at once.").hasNot("It starts by itself")
	b.get("/campaigns/new").is(200).has(`data-audiences="user_ids segment_id list_id"`, `data-audiences="reserved_template_id holds_template_id"`)
}
