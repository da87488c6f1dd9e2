package api_test

import (
	"fmt"
	"testing"
	"time"
)

// testCampaignTellsWhoSleeps: recipients in their quiet hours are in flight, and do not count for
// the remaining time.
func testCampaignTellsWhoSleeps(t *testing.T) {
	r := newFixture(t, nil)
	begun := now()
	minute := begun.Hour()*60 + begun.Minute()
	r.exec(`insert into users (id, timezone, quiet_from, quiet_to) values (7, 'UTC', 0, 0), (8, 'UTC', $1, $2)`, (minute+1440-120)%1440, (minute+30)%1440)
	path := "/admin/campaigns/" + r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish()), 201, "").at("id").(string)
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, "")
	r.carryOut(t)
	a := r.want(r.call(r.admin(), "GET", path, nil), 200, "")
	until, err := time.Parse(time.RFC3339, fmt.Sprint(a.at("progress.waiting_until")))
	if err != nil || a.at("state") != "running" || a.at("progress.sent") != 1.0 || a.at("progress.in_flight") != 1.0 || a.at("progress.waiting") != 1.0 ||
		a.at("progress.eta_seconds") != nil || until.Before(now().Add(25*time.Minute)) || until.After(now().Add(31*time.Minute)) {
		t.Errorf("%v: %s", err, a.Body)
	}
}
