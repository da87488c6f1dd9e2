package demo

import (
	"context"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// testedName is the campaign whose two versions are tested while the demo runs.
const testedName = "夜市预告 A/B · Night market: two headlines"

// readShares is the share of the recipients of each version who follow its link, and readMean the mean time until they do.
var readShares = map[string]float64{"a": .19, "b": .31}

const readMean = 4 * time.Minute

// A recipient is a user to whom a version of a campaign was sent.
type recipient struct {
	User    string `json:"user_id"`
	Variant string `json:"variant"`
}

// A reading is a recipient who follows the link of the campaign.
type reading struct {
	user    int64
	variant int
	after   time.Duration // since the start of the campaign
}

// readings draws the recipients who follow their link, the first one first: the same for the same recipients each time.
func readings(list []recipient) (readers []reading) {
	for _, one := range list {
		id, _ := strconv.ParseInt(one.User, 10, 64) // an id of the API is a number
		r := rand.New(rand.NewPCG(53, uint64(id)))
		if r.Float64() < readShares[one.Variant] {
			readers = append(readers, reading{id, int(one.Variant[0] - 'a'), 20*time.Second + time.Duration(r.ExpFloat64()*float64(readMean))})
		}
	}
	slices.SortFunc(readers, func(a, b reading) int { return int(a.after - b.after) })
	return readers
}

// A test is the campaign whose recipients follow their links, with the number of those who have.
type test struct {
	id       int64
	began    time.Time
	readers  []reading
	followed int
}

// read lets recipients of the tested campaign follow their links when their time has come.
func (l *Live) read(ctx context.Context, now time.Time) error {
	if l.CampaignLink == nil {
		return nil
	}
	if l.tested.id == 0 {
		if err := l.findReaders(ctx); err != nil {
			return err
		}
	}
	t := &l.tested
	for ; t.followed < len(t.readers) && !t.began.Add(t.readers[t.followed].after).After(now); t.followed++ {
		one := t.readers[t.followed]
		l.follow(ctx, l.CampaignLink(t.id, one.user, one.variant))
	}
	return nil
}

// findReaders finds the recipients of the tested campaign once all its messages are sent.
func (l *Live) findReaders(ctx context.Context) error {
	var answer struct {
		Campaigns []struct {
			ID       string    `json:"id"`
			Name     string    `json:"name"`
			StartsAt time.Time `json:"starts_at"`
		} `json:"campaigns"`
	}
	if err := l.Client.call(ctx, request{method: "GET", path: "/admin/campaigns?state=running&limit=100"}, &answer); err != nil {
		return err
	}
	for _, c := range answer.Campaigns {
		if c.Name != testedName {
			continue
		}
		var sent []recipient
		for _, variant := range []string{"a", "b"} {
			of := func(outcome string) ([]recipient, error) {
				var page struct {
					Recipients []recipient `json:"recipients"`
				}
				q := url.Values{"outcome": {outcome}, "variant": {variant}, "limit": {"1000"}}
				err := l.Client.call(ctx, request{method: "GET", path: "/admin/campaigns/" + c.ID + "/recipients?" + q.Encode()}, &page)
				return page.Recipients, err
			}
			if waiting, err := of("in_flight"); err != nil || len(waiting) > 0 {
				return err
			}
			list, err := of("sent")
			if err != nil {
				return err
			}
			sent = append(sent, list...)
		}
		if len(sent) > 0 {
			id, _ := strconv.ParseInt(c.ID, 10, 64) // an id of the API is a number
			l.tested = test{id: id, began: c.StartsAt, readers: readings(sent)}
		}
	}
	return nil
}
