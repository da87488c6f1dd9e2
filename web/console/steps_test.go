package console

import (
	"net/http"
	"testing"
	"time"

	"dropbell/domain/staff"
)

// A step that the state does not allow is not asked about.
func TestImpossibleStepsOfADrop(t *testing.T) {
	g := newRig(t)
	d := g.published(10, time.Hour)
	b, dialog := g.as(staff.Marketer), g.as(staff.Marketer).htmx()
	page := templateURL(d.ID)
	refused := func(step, title, why string) {
		t.Helper()
		dialog.header.Set("Accept-Language", b.header.Get("Accept-Language"))
		b.get(page+"/"+step).is(http.StatusConflict).has(title, why).hasNot(`name="reason"`)
		dialog.get(page+"/"+step).is(http.StatusConflict).has(title, why).hasNot("<html", "<button")
	}
	refused("resume", "“Moon cake night” cannot be resumed", "The template is published and has not opened yet. It can be edited, paused, closed or cancelled.")
	refused("publish", "cannot be published", "has not opened yet")
	b.post(page+"/pause", nil).to(page)
	refused("pause", "cannot be paused", "The template is paused. It can be edited, resumed or closed.")
	g.wait(70 * time.Minute)
	refused("cancel", "cannot be cancelled", "The drop has opened: it cannot be cancelled any more. Close it instead.")
	b.post(page+"/cancel", nil).is(http.StatusConflict).has("Close it instead.").hasNot(`name="reason"`)
	b.post(page+"/close", nil).to(page)
	for _, step := range []string{"pause", "resume", "cancel", "close", "publish"} {
		refused(step, "cannot be", "The template is closed. Nothing of it can change any more.")
	}
	b.header.Set("Accept-Language", "zh-CN")
	refused("pause", "「Moon cake night」不能暂停", "模板已结束，不能再做任何更改。")
}
