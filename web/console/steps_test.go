package console

import (
	"net/http"
	"testing"
	"time"

	"dropbell/domain/staff"
)

// refusing returns a marketer's browser, and what looks whether a step of the
// page is refused, as a page and as a dialog, instead of asked about.
func (g *rig) refusing(page string) (*browser, func(step, title, why string)) {
	b, dialog := g.as(staff.Marketer), g.as(staff.Marketer).htmx()
	return b, func(step, title, why string) {
		g.Helper()
		dialog.header.Set("Accept-Language", b.header.Get("Accept-Language"))
		b.get(page+"/"+step).is(http.StatusConflict).has(title, why).hasNot(`name="reason"`)
		dialog.get(page+"/"+step).is(http.StatusConflict).has(title, why).hasNot("<html", "<button")
	}
}

// A step that the state does not allow is not asked about.
func TestImpossibleStepsOfADrop(t *testing.T) {
	g := newRig(t)
	page := templateURL(g.published(10, time.Hour).ID)
	b, refused := g.refusing(page)
	refused("resume", "“Moon cake night” cannot be resumed", "The template is published and has not opened yet. It can be edited, paused, closed or cancelled.")
	refused("publish", "cannot be published", "has not opened yet")
	b.post(page+"/pause", nil).to(page)
	refused("pause", "cannot be paused", "The template is paused. It can be edited, resumed or closed.")
	g.wait(70 * time.Minute)
	refused("cancel", "cannot be cancelled", "The drop has opened: it can no longer be cancelled. Close it instead.")
	b.post(page+"/cancel", nil).is(http.StatusConflict).has("Close it instead.").hasNot(`name="reason"`)
	b.post(page+"/close", nil).to(page)
	for _, step := range []string{"pause", "resume", "cancel", "close", "publish"} {
		refused(step, "cannot be", "The template is closed. Nothing of it can change any more.")
	}
	b.header.Set("Accept-Language", "zh-CN")
	refused("pause", "「Moon cake night」不能暂停", "模板已结束，不能再做任何更改。")
}

func TestImpossibleStepsOfACampaign(t *testing.T) {
	g := newRig(t)
	page := g.as(staff.Marketer).post("/campaigns", campaignForm("name", "Spring")).is(http.StatusSeeOther).header.Get("Location")
	b, refused := g.refusing(page)
	refused("resume", "“Spring” cannot be resumed", "The campaign is a draft. It can be edited, published or cancelled.")
	refused("pause", "“Spring” cannot be paused", "The campaign is a draft.")
	b.post(page+"/publish", b.publishing(page)).to(page)
	refused("publish", "“Spring” cannot be published", "The campaign is published and has not begun yet. It can be cancelled.")
	b.post(page+"/resume", nil).is(http.StatusConflict).has("It can be cancelled.").hasNot(`name="reason"`)
	b.post(page+"/cancel", nil).to(page)
	for _, step := range []string{"publish", "pause", "resume", "cancel"} {
		refused(step, "cannot be", "The campaign was cancelled. Nothing of it can change any more.")
	}
	b.header.Set("Accept-Language", "zh-CN")
	refused("cancel", "「Spring」不能取消", "")
}
