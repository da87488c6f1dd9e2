package campaigns_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// fixtureOfLists is lists and the files that fill them.
type fixtureOfLists struct {
	*campaignFixture
	lists *segment.Service
	jobs  *job.Service
}

// anyIDs makes a list of ids of every upload.
type anyIDs struct{ job.Rows }

func (anyIDs) OpenTable(context.Context, int64, job.Reading, json.RawMessage) (job.Rows, error) {
	return anyIDs{}, nil
}
func (anyIDs) Next() (int64, []string, error) { return 1, []string{"7"}, nil }
func (anyIDs) Close() error                   { return nil }

func newLibrary(t *testing.T) *fixtureOfLists {
	s := newOffice(t)
	l := &fixtureOfLists{campaignFixture: s, jobs: &job.Service{Store: s.Jobs}}
	l.lists = &segment.Service{Store: l.Segments, Jobs: l.jobs, Tables: anyIDs{}}
	return l
}

// list makes a list of the users from 1 to n.
func (l *fixtureOfLists) list(n int) segment.Segment {
	l.Helper()
	g, _, err := l.lists.CreateList(l.Context(), li, "Fair", 0, "")
	l.Must(err)
	_, err = l.Segments.AddMembers(l.Context(), g.ID, upTo(n))
	l.Must(err)
	return g
}

func upTo(n int) (list []user.ID) {
	for id := range n {
		list = append(list, user.ID(id+1))
	}
	return list
}

func (l *fixtureOfLists) upload() int64 {
	l.Helper()
	u, err := l.Uploads.SaveUpload(l.Context(), "list.csv", strings.NewReader("id\n7\n8\n"), 1<<20, li)
	l.Must(err)
	return u.ID
}

// to returns a change that makes a campaign be for the list, from tomorrow on.
func to(id int64) func(*campaign.Spec) {
	return func(sp *campaign.Spec) {
		sp.Name, sp.Audience = fmt.Sprint("Spring ", id), campaign.Audience{Kind: campaign.List, ID: id}
		sp.StartsAt, sp.EndsAt = pgtest.Clock().Add(24*time.Hour), pgtest.Clock().Add(48*time.Hour)
	}
}

// kept checks that no user is added, by a new file or by a file that is being read.
func (l *fixtureOfLists) kept(what string, id int64) {
	l.Helper()
	_, err := l.lists.AddFile(l.Context(), li, id, l.upload(), "")
	if !errors.Is(err, segment.ErrListInUse) {
		l.Errorf("%s: a file is taken: %v", what, err)
	}
	if _, err := l.Segments.AddMembers(l.Context(), id, ids(7, 8)); !errors.Is(err, segment.ErrListInUse) {
		l.Errorf("%s: ids are added: %v", what, err)
	}
}

func (l *fixtureOfLists) free(what string, id int64) {
	l.Helper()
	j, err := l.lists.AddFile(l.Context(), li, id, l.upload(), "")
	if err != nil {
		l.Errorf("%s: %v", what, err)
		return
	}
	_, err = l.jobs.Cancel(l.Context(), li, j.ID)
	l.Must(err)
}

// The reach that staff approve is the reach of the list, which stays unchanged until the
// audience is read.
func TestCampaignKeepsItsList(t *testing.T) {
	l := newLibrary(t)
	small, large := l.list(3), l.list(20)
	c, err := l.service.Create(t.Context(), li, specOf(to(small.ID)), "")
	l.Must(err)
	l.free("a draft", small.ID)
	c, err = l.service.Do(t.Context(), li, c.ID, 0, campaign.Publishing, "")
	l.Must(err)
	if c.State != campaign.Scheduled {
		t.Fatalf("one person may send to three: %+v", c)
	}
	l.kept("scheduled", small.ID)
	if uses, err := l.lists.Uses(t.Context(), li, small.ID); err != nil || len(uses) != 1 || !uses[0].Keeps {
		t.Errorf("used by %+v %v", uses, err)
	}
	l.Exec(`update campaigns set starts_at = now() - interval '1 minute' where id = $1`, c.ID)
	l.Must(l.launcher.Start(t.Context(), c.ID))
	l.kept("running", small.ID)
	l.Exec(`update campaigns set state = 'paused' where id = $1`, c.ID)
	l.kept("paused before it was cut", small.ID)
	l.Must(l.launcher.Cut(t.Context(), c.ID))
	l.free("cut", small.ID)

	asked, open := l.asked(to(large.ID))
	l.kept("waiting for approval", large.ID)
	l.Exec(`update campaigns set starts_at = now() - interval '1 hour', ends_at = now() - interval '1 second' where id = $1`, asked.ID)
	l.free("nobody approved in time", large.ID)
	l.Exec(`update campaigns set starts_at = $2, ends_at = $3 where id = $1`, asked.ID, asked.StartsAt, asked.EndsAt)
	_, err = l.approvals.Refuse(t.Context(), ada, asked.ID, open.ID, "too many")
	l.Must(err)
	l.free("refused", large.ID)
	_, err = l.approvals.Ask(t.Context(), li, asked.ID, "")
	l.Must(err)
	_, err = l.service.Do(t.Context(), li, asked.ID, 0, campaign.Cancelling, "")
	l.Must(err)
	l.free("cancelled", large.ID)
}

func specOf(change func(*campaign.Spec)) campaign.Spec {
	sp := campaignSpec()
	change(&sp)
	return sp
}

// Approval can be requested for a complete list only.
func TestAskingNeedsTheWholeList(t *testing.T) {
	l := newLibrary(t)
	list := l.list(20)
	c, err := l.service.Create(t.Context(), li, specOf(to(list.ID)), "")
	l.Must(err)
	_, err = l.lists.AddFile(t.Context(), li, list.ID, l.upload(), "")
	l.Must(err)
	if _, err := l.service.Do(t.Context(), li, c.ID, 0, campaign.Publishing, ""); !errors.Is(err, segment.ErrFilling) {
		t.Errorf("asked while a file was being read: %v", err)
	}
	if c := l.now(c); c.ApprovalAskedAt != nil {
		t.Errorf("it waits for approval: %+v", c)
	}
}

// growingList adds users to the list when the audience has just been estimated.
type growingList struct {
	approval.Store
	add func()
}

func (c growingList) Estimate(ctx context.Context, a campaign.Audience) (int64, bool, error) {
	n, exact, err := c.Store.Estimate(ctx, a)
	c.add()
	return n, exact, err
}

// A user added between the estimate and the publication is not overlooked.
func TestPublishingHoldsTheListToTheEstimate(t *testing.T) {
	l := newLibrary(t)
	list := l.list(3)
	c, err := l.service.Create(t.Context(), li, specOf(to(list.ID)), "")
	l.Must(err)
	l.approvals.Store = growingList{l.campaigns, func() {
		_, err := l.Segments.AddMembers(t.Context(), list.ID, upTo(20))
		l.Must(err)
	}}
	c, err = l.service.Do(t.Context(), li, c.ID, 0, campaign.Publishing, "")
	if err != nil || c.State != campaign.Draft || c.ApprovalAskedAt == nil {
		t.Errorf("published to twenty by one person: %+v %v", c, err)
	}
}

// If a campaign is published and a file for its list is started concurrently, exactly one
// succeeds.
func TestPublishingAgainstAFile(t *testing.T) {
	l := newLibrary(t)
	l.Exec(`delete from campaign_limits`)
	for range 12 {
		list, upload := l.list(3), l.upload()
		c, err := l.service.Create(t.Context(), staff.System(), specOf(to(list.ID)), "")
		l.Must(err)
		refused := make(chan error, 2)
		go func() {
			_, err := l.service.Do(l.Context(), staff.System(), c.ID, 0, campaign.Publishing, "")
			refused <- err
		}()
		go func() {
			_, err := l.lists.AddFile(l.Context(), li, list.ID, upload, "")
			refused <- err
		}()
		a, b := <-refused, <-refused
		if (a == nil) == (b == nil) {
			t.Fatalf("both or none: %v, %v", a, b)
		}
		if err := errors.Join(a, b); !errors.Is(err, segment.ErrListInUse) && !errors.Is(err, segment.ErrFilling) {
			t.Fatal(err)
		}
	}
}
