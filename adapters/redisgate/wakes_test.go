package redisgate

import (
	"context"
	"slices"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// heard are the calls of a subscription, in order.
type heard struct {
	*testing.T
	calls chan string
}

func listen(t *testing.T, o Options, templateID int64) (*Gate, heard) {
	t.Helper()
	client := newClient(t)
	h := heard{t, make(chan string, 100)}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- Listen(ctx, client, Calls{Deaf: func() { h.calls <- "deaf" }, Unwritten: func(int64) { h.calls <- callUnwritten },
			Missing: func(int64) { h.calls <- callMissing }})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	h.next("deaf") // the subscription stands
	return New(client, unwritten{template.Template{ID: templateID, Stored: template.Published}}, o), h
}

func (h heard) next(want string) {
	h.Helper()
	select {
	case got := <-h.calls:
		if got != want {
			h.Fatalf("called because of %s, want %s", got, want)
		}
	case <-time.After(20 * time.Second):
		h.Fatalf("nobody was called because of %s", want)
	}
}

// TestTheFirstClaimCallsTheWriter: claims that are accepted while other claims wait to be
// written make no call, since the writer continues until no claim waits.
func TestTheFirstClaimCallsTheWriter(t *testing.T) {
	g, h := listen(t, Options{}, 7)
	newShards(t, NewShards(g.client), 7, 1, openTerms(5), 100)
	accept := func(by user.ID) {
		t.Helper()
		_, err := g.Claim(t.Context(), claim.Request{ID: claim.NewID(uint64(by)<<32, 7), TemplateID: 7, UserID: by, Origin: claim.ByTap})
		must(t, err)
	}
	accept(1)
	h.next(callUnwritten)
	for by := range user.ID(10) {
		accept(by + 2)
	}
	stream := NewStream(g.client, "writer")
	for {
		groups, _, err := stream.Take(t.Context(), 7, 0, 100)
		must(t, err)
		if len(groups) == 0 {
			break
		}
		issued := map[claim.ID]gate.Settlement{}
		for _, of := range groups {
			for _, c := range of.Claims {
				issued[c.ID] = gate.Settlement{ID: c.ID, Issued: true}
			}
		}
		must(t, stream.Settle(t.Context(), 7, 0, groups, issued))
	}
	accept(20)
	h.next(callUnwritten)
	select {
	case got := <-h.calls:
		t.Errorf("called once more than claims began to wait, because of %s", got)
	default:
	}
}

// TestAMissingShardCallsTheKeeper, again and again while claims wait for it.
func TestAMissingShardCallsTheKeeper(t *testing.T) {
	g, h := listen(t, Options{Patience: 20 * time.Second}, 7)
	answered := make(chan error)
	go func() {
		_, err := g.Claim(t.Context(), claim.Request{ID: claim.NewID(1<<32, 7), TemplateID: 7, UserID: 1, Origin: claim.ByTap})
		answered <- err
	}()
	h.next(callMissing)
	h.next(callMissing)
	newShards(t, NewShards(g.client), 7, 1, openTerms(5), 100)
	must(t, <-answered)
}

// TestMembers: processes that are silent for too long or leave are members no more.
func TestMembers(t *testing.T) {
	client := newClient(t)
	a, b := NewMembers(client, "a"), NewMembers(client, "b")
	is := func(m Members, want ...string) {
		t.Helper()
		names, server, err := m.Beat(t.Context())
		must(t, err)
		if server == "" {
			t.Error("the process of Redis does not say its name")
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("%v live, want %v", names, want)
		}
	}
	is(a, "a")
	is(b, "a", "b")
	must(t, client.ZIncrBy(t.Context(), keepersKey, -float64(goneAfter.Milliseconds())-1000, "a").Err()) // silent since then
	is(b, "b")
	is(a, "a", "b")
	must(t, b.Leave(t.Context()))
	is(a, "a")
}
