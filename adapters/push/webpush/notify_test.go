package webpush_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/push/webpush"
	"dropbell/adapters/push/webpush/webpushtest"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// TestNotices: the browser decrypts the notice. The push service keeps the notice until its end
// and replaces it by a notice with the same tag. A subscription that is gone is reported.
func TestNotices(t *testing.T) {
	s := start(t, nil)
	sender, err := webpush.New(config(t))
	musttest.OK(t, err)
	defer sender.Close()
	b := webpushtest.NewBrowser(t, s.URL+"/201")
	n := webpush.Notice{Title: "Dropbell", Text: "「Moon」已抢光", Tag: "sold_out:7", URL: "/templates/7", WorthlessAfter: time.Now().Add(time.Hour)}
	if r, gone := sender.Notify(t.Context(), b.PushSubscription, n); r.Status != delivery.Delivered || gone {
		t.Fatalf("%+v, gone %v", r, gone)
	}
	n.WorthlessAfter = time.Now().Add(-time.Hour)
	sender.Notify(t.Context(), b.PushSubscription, n)
	var got struct{ Title, Body, Tag, URL string }
	first, again := s.pushes[0], s.pushes[1]
	musttest.OK(t, json.Unmarshal(b.Read(t, first.body), &got))
	want := got
	want.Title, want.Body, want.Tag, want.URL = n.Title, n.Text, n.Tag, n.URL
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the browser reads (-want +got):\n%s", diff)
	}
	if ttl := first.header.Get("TTL"); ttl != "3600" && ttl != "3599" || again.header.Get("TTL") != "0" || first.header.Get("Topic") != again.header.Get("Topic") {
		t.Errorf("sent with %v, then with %v", first.header, again.header)
	}
	for path, want := range map[string]struct {
		status delivery.Status
		gone   bool
	}{
		"/404": {delivery.Permanent, true}, "/410": {delivery.Permanent, true}, "/413": {delivery.Permanent, false},
		"/403": {delivery.Transient, false}, "/500": {delivery.Transient, false}, "/429?after=7": {delivery.Throttled, false},
	} {
		if r, gone := sender.Notify(t.Context(), webpushtest.NewBrowser(t, s.URL+path).PushSubscription, n); r.Status != want.status || gone != want.gone {
			t.Errorf("%s: %+v, gone %v", path, r, gone)
		}
	}
	insecure, err := webpush.New(func(c webpush.Config) webpush.Config { c.AllowInsecure = false; return c }(config(t)))
	musttest.OK(t, err)
	defer insecure.Close()
	if r, _ := insecure.Notify(t.Context(), b.PushSubscription, n); r.Status != delivery.Permanent || len(s.pushes) != 8 {
		t.Errorf("%+v: %d pushes", r, len(s.pushes))
	}
}
