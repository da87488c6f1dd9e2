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
	refused("resume", "“Moon cake night” cannot be resumed", "The drop is in the state “Scheduled”, which does not allow this.")
	refused("publish", "cannot be published", "“Scheduled”")
	b.post(page+"/pause", nil).to(page)
	refused("pause", "cannot be paused", "“Paused”")
	g.wait(70 * time.Minute)
	refused("cancel", "cannot be cancelled", "The drop has opened. Close it instead of cancelling it.")
	b.post(page+"/cancel", nil).is(http.StatusConflict).has("Its current state does not allow this.", "Close it instead").hasNot(`name="reason"`)
	b.post(page+"/close", nil).to(page)
	for _, step := range []string{"pause", "resume", "cancel", "close", "publish"} {
		refused(step, "cannot be", "“Closed”")
	}
	b.header.Set("Accept-Language", "zh-CN")
	refused("pause", "「Moon cake night」不能暂停", "当前状态为「已结束」，不能执行此操作。")
}
