package access_test

import (
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// A sentence names its object once, and a search for publications finds approved publications.
func TestWordsOfTheAuditLog(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into audit (actor, action, object_kind, object_id) values ('staff:1 Ada', 'segment.create', 'segment', '8'),
		('staff:1 Ada', 'campaign.approve', 'campaign', '5'), ('staff:1 Ada', 'campaign.publish', 'campaign', '6'), ('staff:1 Ada', 'campaign.pause', 'campaign', '7')`)
	b := g.As(staff.Viewer)
	b.Get("/audit?kind=segment").Is(200).Has("created segment #8").HasNot("the segment segment")
	b.Get("/audit?action=campaign.publish").Is(200).Has(`href="/campaigns/5"`, `href="/campaigns/6"`).HasNot(`href="/campaigns/7"`)
	g.Exec(`delete from audit where action = 'campaign.publish'`)
	b.Get("/audit").Is(200).Has(`value="campaign.publish"`)
}

// Equal changes that follow one another are one line. Instants are in the zone of the viewer, also of shops in other zones. The service key of the configuration
// is named as such.
func TestRunsOfTheAuditLog(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, time.Hour)
	g.Exec(`update shops set timezone = 'Europe/Berlin' where number = 10`)
	g.Exec(`insert into audit (at, actor, action, object_kind, object_id, shop_number, reason) select timestamptz '2026-11-29 23:34Z', 'key:1 ADMIN_API_KEY', 'coupon.revoke', 'coupon', n::text, case n when 9 then 11 else 10 end, 'returned'
		from generate_series(5, 9) n`)
	g.As(staff.Viewer).Get("/audit?kind=coupon").Is(200).Has("coupon #8 and 3 more", "Service key of the configuration", "30 Nov 2026, 07:34", `title="2026-11-29 23:34:00 UTC"`, "coupon #9").HasNot("30 Nov 2026, 00:34", "coupon #9 and", "Key “ADMIN_API_KEY”")
}

// Reasons that the system recorded are shown in the viewer's language; reasons that
// members wrote are shown unchanged.
func TestReasonsOfTheSystemInTheAuditLog(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, time.Hour)
	g.Exec(`update templates set opens_at = date_trunc('minute', now()) - interval '2 hours', closes_at = now() - interval '1 second' where id = $1`, d.ID)
	if n, err := g.Templates.CloseEnded(g.Context(), 10); n != 1 || err != nil {
		t.Fatalf("%d closed: %v", n, err)
	}
	if n := g.Number(`select count(*) from audit where action = 'template.close' and reason = 'closes_at_passed'`); n != 1 {
		t.Error("the log has no code for the reason")
	}
	g.Exec(`insert into audit (actor, action, object_kind, object_id, reason) values ('system Dropbell', 'template.close', 'template', '91', 'closes_at_passed'),
		('system Dropbell', 'template.close', 'template', '92', 'valid_until_passed'), ('system Dropbell', 'staff.create', 'staff', '93', 'first_admin'),
		('system Dropbell', 'template.close', 'template', '94', 'something else'), ('staff:1 Ada', 'template.close', 'template', '95', 'first_admin')`)
	b, zh := g.As(staff.Viewer), g.Chinese()
	b.Get("/audit").Is(200).Has("Its closing time has passed.", "validity has ended.", "The first administrator.", "something else", ">first_admin<").HasNot("closes_at", "valid_until")
	zh.Get("/audit").Is(200).Has("已过结束时间。", "优惠券有效期已过。", "首位管理员。", "something else", ">first_admin<").HasNot("has passed")
	zh.Get(shell.TemplateURL(d.ID) + "?tab=history").Is(200).Has("已过结束时间。").HasNot("closes_at_passed")
	// The viewer's words find entries that the log stores as a code.
	b.Get("/audit?q=closing+TIME").Is(200).Has(shell.TemplateURL(d.ID), `href="/templates/91"`).HasNot(`href="/templates/92"`, `href="/templates/94"`)
	zh.Get("/audit?q=有效期已过").Is(200).Has(`href="/templates/92"`).HasNot(`href="/templates/91"`)
	b.Get("/audit?q=first+administrator").Is(200).Has("The first administrator.").HasNot(`href="/templates/95"`)
	b.Get("/audit?q=something").Is(200).Has(`href="/templates/94"`).HasNot(`href="/templates/91"`)
}
