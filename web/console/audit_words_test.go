package console

import (
	"testing"

	"dropbell/domain/staff"
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
