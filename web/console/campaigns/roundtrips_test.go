package campaigns_test

import (
	"fmt"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/localstack/network"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// TestRoundTripsOfACampaignsPage counts how often the page of a campaign waits for the database, by
// a proxy that delays all data, so that reads at the same time are seen as such. The least of
// several pages counts: in the others connections were opened or statements prepared.
func TestRoundTripsOfACampaignsPage(t *testing.T) {
	const pages, want = 12, 10
	p, database, err := network.Through(localstack.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	g := consoletest.NewAt(t, database)
	g.Shop(10)
	url := fmt.Sprintf("/campaigns/%d", g.SentOut("Moon cakes", 10, 400).ID)
	g.Count()
	b := g.As(staff.Viewer)
	p.SetDelay(10 * time.Millisecond)
	least := 1000
	for range pages {
		p.Record()
		b.Get(url).Is(200).Has("Moon cakes", "No recipient missing")
		least = min(least, network.InSequence(p.Recorded()))
	}
	if least > want || least == 0 {
		t.Errorf("the page makes %d round trips in sequence, want at most %d", least, want)
	}
}
