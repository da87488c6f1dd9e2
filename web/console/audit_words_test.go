package console

import (
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// A sentence names its object once, and who looks for publications finds those
// that somebody approved.
func TestWordsOfTheAuditLog(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into audit (actor, action, object_kind, object_id) values ('staff:1 Ada', 'segment.create', 'segment', '8'),
		('staff:1 Ada', 'campaign.approve', 'campaign', '5'), ('staff:1 Ada', 'campaign.publish', 'campaign', '6'), ('staff:1 Ada', 'campaign.pause', 'campaign', '7')`)
	b := g.as(staff.Viewer)
	b.get("/audit?kind=segment").is(200).has("created segment #8").hasNot("the segment segment")
	b.get("/audit?action=campaign.publish").is(200).has(`href="/campaigns/5"`, `href="/campaigns/6"`).hasNot(`href="/campaigns/7"`)
	g.exec(`delete from audit where action = 'campaign.publish'`)
	b.get("/audit").is(200).has(`value="campaign.publish"`)
}

// Why the system did something is told in the viewer's language, whatever
// version recorded it; what people wrote stands as they wrote it.
func TestReasonsOfTheSystemInTheAuditLog(t *testing.T) {
	g := newRig(t)
	d := g.published(10, time.Hour)
	g.exec(`update templates set opens_at = date_trunc('minute', now()) - interval '2 hours', closes_at = now() - interval '1 second' where id = $1`, d.ID)
	if n, err := g.Templates.CloseEnded(g.Context(), 10); n != 1 || err != nil {
		t.Fatalf("%d closed: %v", n, err)
	}
	if n := g.number(`select count(*) from audit where action = 'template.close' and reason = 'closes_at_passed'`); n != 1 {
		t.Error("the log has no code for the reason")
	}
	g.exec(`insert into audit (actor, action, object_kind, object_id, reason) values ('system Dropbell', 'template.close', 'template', '91', 'closes_at has passed'),
		('system Dropbell', 'template.close', 'template', '92', 'valid_until has passed'), ('system Dropbell', 'staff.create', 'staff', '93', 'first admin'),
		('system Dropbell', 'template.close', 'template', '94', 'something else'), ('staff:1 Ada', 'template.close', 'template', '95', 'first_admin')`)
	b, zh := g.as(staff.Viewer), g.chinese()
	b.get("/audit").is(200).has("Its closing time has passed.", "validity has ended.", "The first administrator.", "something else", ">first_admin<").hasNot("closes_at", "valid_until has", ">first admin<")
	zh.get("/audit").is(200).has("已过结束时间。", "优惠券有效期已过。", "首位管理员。", "something else", ">first_admin<").hasNot("has passed", ">first admin<")
	zh.get(shell.TemplateURL(d.ID)).is(200).has("已过结束时间。").hasNot("closes_at_passed")
	// The words find what stands in the log as a code.
	b.get("/audit?q=closing+TIME").is(200).has(shell.TemplateURL(d.ID), `href="/templates/91"`).hasNot(`href="/templates/92"`, `href="/templates/94"`)
	zh.get("/audit?q=有效期已过").is(200).has(`href="/templates/92"`).hasNot(`href="/templates/91"`)
	b.get("/audit?q=first+administrator").is(200).has("The first administrator.").hasNot(`href="/templates/95"`)
	b.get("/audit?q=something").is(200).has(`href="/templates/94"`).hasNot(`href="/templates/91"`)
}
