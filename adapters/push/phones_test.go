package push_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/push"
	"dropbell/adapters/push/apns"
	"dropbell/adapters/push/fcm"
	"dropbell/adapters/push/pushtest"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// apple starts an imitation of Apple for one app, and makes a service of it.
func apple(t *testing.T, topic string, configured bool) (*pushtest.APNs, *apns.Service) {
	t.Helper()
	a, err := pushtest.NewAPNs()
	musttest.OK(t, err)
	t.Cleanup(a.Close)
	a.Topic = topic
	s, err := apns.New(apns.Config{Key: a.Key, KeyID: a.KeyID, TeamID: a.TeamID, Topic: topic, URL: a.URL, Configured: configured})
	musttest.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return a, s
}

// google is [apple] for a Firebase project that staff have configured. gone are the tokens of
// phones from which the app was removed.
func google(t *testing.T, project string, perMinute int) (f *pushtest.FCM, s *fcm.Service, gone map[string]bool) {
	t.Helper()
	f, err := pushtest.NewFCM()
	musttest.OK(t, err)
	t.Cleanup(f.Close)
	f.Account = bytes.Replace(f.Account, []byte(`"project_id":"`+f.Project), []byte(`"project_id":"`+project), 1)
	f.Project, gone = project, map[string]bool{}
	s, err = fcm.New(fcm.Config{Account: f.Account, URL: f.URL, PerMinute: perMinute, Configured: true,
		OnGone: func(_ context.Context, _ user.ID, d user.Device) { gone[d.Token] = true }})
	musttest.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return f, s, gone
}

func iPhone(app string) user.Device {
	return user.Device{Platform: user.IOS, App: app, Token: strings.Repeat("a1", 32)}
}

func android(app string) user.Device {
	return user.Device{Platform: user.Android, App: app, Token: "fYx3:APA91b" + strings.Repeat("x", 130)}
}

func toDevices(shop string, devices ...user.Device) []delivery.Message {
	messages := registered(1)
	messages[0].To.Devices, messages[0].Subject.ShopNumber = devices, shop
	return messages
}

// TestPhonesFindTheServiceOfTheirApp: a phone is handed only to the service of its app, and the
// outcome names the service. A phone whose app has no service is skipped if no other device can
// be reached.
func TestPhonesFindTheServiceOfTheirApp(t *testing.T) {
	own, environment := apple(t, "com.env", false)
	market, marketService := apple(t, "com.market", true)
	seven, sevenService := apple(t, "com.seven", true)
	projects, projectService, _ := google(t, "market-project", 600_000)
	counts := func() [4]int { return [4]int{own.Count(), market.Count(), seven.Count(), projects.Count()} }
	s := push.New(push.Options{}, environment)
	k := &circuits{}
	s.Configurable(k, nil)
	s.Set([]push.Configured{{Provider: 1, Service: marketService}, {Provider: 2, Shop: 7, Service: sevenService}, {Provider: 3, Service: projectService}})
	for name, c := range map[string]struct {
		shop    string
		devices []user.Device
		want    [4]int
		via     int64
	}{
		"no app":                {"1", []user.Device{iPhone("")}, [4]int{1}, 0},
		"the environment's app": {"7", []user.Device{iPhone("com.env")}, [4]int{1}, 0},
		"an app of all shops":   {"7", []user.Device{iPhone("com.market")}, [4]int{0, 1}, 1},
		"the shop's app":        {"7", []user.Device{iPhone("com.seven")}, [4]int{0, 0, 1}, 2},
		"no app, and no service of the environment": {"1", []user.Device{android("")}, [4]int{0, 0, 0, 1}, 3},
		"one of each": {"7", []user.Device{iPhone(""), iPhone("com.market"), iPhone("com.seven"), iPhone("com.gone"), android("market-project")}, [4]int{1, 1, 1, 1}, 0},
	} {
		before, reports := counts(), len(k.reports)
		r := s.Send(t.Context(), toDevices(c.shop, c.devices...))[0]
		after, calls := counts(), 0
		for i := range after {
			if after[i] -= before[i]; i > 0 {
				calls += after[i]
			}
		}
		if r.Status != delivery.Delivered || r.Via != c.via || after != c.want || len(k.reports)-reports != calls {
			t.Errorf("%s: %+v, pushed %v, %d reports", name, r, after, len(k.reports)-reports)
		}
	}
	for name, devices := range map[string][]user.Device{"an app of another shop": {iPhone("com.seven")}, "an app that is gone": {iPhone("com.gone"), android("gone-project")}} {
		before := counts()
		if r := s.Send(t.Context(), toDevices("1", devices...))[0]; r.Status != delivery.Permanent || !r.Skip || !r.Held || r.Reason != delivery.ReasonNoApp || counts() != before {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestAPhoneOfAnotherApp: the answer that a token belongs to another app keeps the phone,
// whether the phone has named its app or not. The answer that the app was removed removes the
// phone. A second service of the app is asked only after the first has certainly not taken the
// message.
func TestAPhoneOfAnotherApp(t *testing.T) {
	first, firstService, gone := google(t, "market-project", 600_000)
	second, secondService, _ := google(t, "market-project", 600_000)
	both := []push.Configured{{Provider: 1, Service: firstService}, {Provider: 2, Order: 1, Service: secondService}}
	mismatch, removed := pushtest.Fault{Status: 403, Reason: "SENDER_ID_MISMATCH"}, pushtest.Fault{Status: 404, Reason: "UNREGISTERED"}
	for name, c := range map[string]struct {
		app    string
		fault  pushtest.Fault
		both   bool
		open   time.Duration
		status delivery.Status
		detail string
		gone   bool
		via    int64
	}{
		"taken for one of the app":         {"", mismatch, false, 0, delivery.Permanent, "FCM answered 403 SENDER_ID_MISMATCH: the phone has registered without naming its app", false, 1},
		"of another app than it says":      {"market-project", mismatch, false, 0, delivery.Permanent, "FCM answered 403 SENDER_ID_MISMATCH", false, 1},
		"removed":                          {"market-project", removed, false, 0, delivery.Permanent, "the app was removed from the phone", true, 1},
		"removed, without an app":          {"", removed, false, 0, delivery.Permanent, "the app was removed from the phone", true, 1},
		"the second account knows it":      {"", mismatch, true, 0, delivery.Delivered, "", false, 2},
		"the first is not ready":           {"market-project", pushtest.Fault{}, true, time.Second, delivery.Delivered, "", false, 2},
		"the first may have taken it":      {"market-project", pushtest.Fault{Status: 500, Reason: "INTERNAL"}, true, 0, delivery.Transient, "FCM answered 500 INTERNAL", false, 1},
		"the first is not configured well": {"market-project", pushtest.Fault{Status: 401, Reason: "THIRD_PARTY_AUTH_ERROR"}, true, 0, delivery.Delivered, "", false, 2},
	} {
		clear(gone)
		first.Heal()
		if c.fault.Status != 0 {
			first.Fail("", c.fault)
		}
		s := push.New(push.Options{})
		s.Configurable(&circuits{open: map[int64]time.Duration{1: c.open}}, nil)
		s.Set(both[:1])
		if c.both {
			s.Set(both)
		}
		asked := second.Count()
		r := s.Send(t.Context(), toDevices("1", android(c.app)))[0]
		if r.Status != c.status || r.Detail != c.detail || r.Via != c.via || r.Skip || gone[android("").Token] != c.gone || second.Count()-asked != int(c.via-1) {
			t.Errorf("%s: %+v, gone %v", name, r, gone)
		}
	}
}

// TestAPhoneIsReachedBesideASandbox: a phone that names its app is reached by the account that
// knows its token: an account of the shop, of all shops, or of the environment. The next account
// is asked only after the account before it has certainly not taken the message. The phone gets
// the message once.
func TestAPhoneIsReachedBesideASandbox(t *testing.T) {
	own, environment := apple(t, "com.market", false)
	all, allService := apple(t, "com.market", true)
	shop, shopService := apple(t, "com.market", true)
	unknown := pushtest.Fault{Status: 400, Reason: "BadDeviceToken"}
	for name, c := range map[string]struct {
		app            string
		own, all, shop pushtest.Fault
		open           time.Duration // of the circuit of the shop's account
		status         delivery.Status
		after          time.Duration
		via            int64
		want           [3]int // pushes by the accounts of the shop, of all shops, and of the environment
	}{
		"the shop's account knows it":                    {"com.market", unknown, unknown, pushtest.Fault{}, 0, delivery.Delivered, 0, 2, [3]int{1}},
		"the one of all shops knows it":                  {"com.market", unknown, pushtest.Fault{}, unknown, 0, delivery.Delivered, 0, 1, [3]int{0, 1}},
		"the environment's knows it":                     {"com.market", pushtest.Fault{}, unknown, unknown, 0, delivery.Delivered, 0, 0, [3]int{0, 0, 1}},
		"all know it":                                    {"com.market", pushtest.Fault{}, pushtest.Fault{}, pushtest.Fault{}, 0, delivery.Delivered, 0, 2, [3]int{1}},
		"the one before may have taken it":               {"com.market", pushtest.Fault{}, pushtest.Fault{Status: 500, Reason: "InternalServerError"}, unknown, 0, delivery.Transient, 0, 1, [3]int{}},
		"none knows it":                                  {"com.market", unknown, unknown, unknown, 0, delivery.Permanent, 0, 0, [3]int{}},
		"none that is ready knows it":                    {"com.market", unknown, unknown, pushtest.Fault{}, time.Minute, delivery.Throttled, time.Minute, 2, [3]int{}},
		"one that is not ready, the environment's does":  {"com.market", pushtest.Fault{}, unknown, unknown, time.Minute, delivery.Delivered, 0, 0, [3]int{0, 0, 1}},
		"a phone that names no app is the environment's": {"", pushtest.Fault{}, pushtest.Fault{}, pushtest.Fault{}, 0, delivery.Delivered, 0, 0, [3]int{0, 0, 1}},
	} {
		before := [3]int{shop.Count(), all.Count(), own.Count()}
		for a, fault := range map[*pushtest.APNs]pushtest.Fault{own: c.own, all: c.all, shop: c.shop} {
			if a.Heal(); fault.Status != 0 {
				a.Fail("", fault)
			}
		}
		s := push.New(push.Options{}, environment)
		s.Configurable(&circuits{open: map[int64]time.Duration{2: c.open}}, nil)
		s.Set([]push.Configured{{Provider: 1, Service: allService}, {Provider: 2, Shop: 7, Order: 9, Service: shopService}})
		r := s.Send(t.Context(), toDevices("7", iPhone(c.app)))[0]
		got := [3]int{shop.Count() - before[0], all.Count() - before[1], own.Count() - before[2]}
		if r.Status != c.status || r.After != c.after || r.Via != c.via || got != c.want {
			t.Errorf("%s: %+v, pushed %v", name, r, got)
		}
		if c.status == delivery.Throttled && (r.Beside == nil || r.Beside.Detail != "APNs answered 400 BadDeviceToken") {
			t.Errorf("%s: beside %+v", name, r.Beside)
		}
	}
}

// TestAppleKeepsPhonesOfAnotherApp is [TestAPhoneOfAnotherApp] of Apple's answers.
func TestAppleKeepsPhonesOfAnotherApp(t *testing.T) {
	a, service := apple(t, "com.market", true)
	s := push.New(push.Options{})
	s.Set([]push.Configured{{Provider: 1, Service: service}})
	for _, reason := range []string{"BadDeviceToken", "DeviceTokenNotForTopic"} {
		a.Fail("", pushtest.Fault{Status: 400, Reason: reason})
		if r := s.Send(t.Context(), toDevices("1", iPhone("")))[0]; r.Status != delivery.Permanent || r.Skip || !strings.HasSuffix(r.Detail, ": the phone has registered without naming its app") {
			t.Errorf("%s: %+v", reason, r)
		}
	}
	for _, reason := range []string{"Unregistered", "ExpiredToken"} { // before the phone has registered anew
		a.Fail("", pushtest.Fault{Status: 410, Reason: reason, Since: time.Now().Add(-time.Hour)})
		messages := toDevices("1", iPhone(""))
		messages[0].To.Devices[0].SeenAt = time.Now()
		if r := s.Send(t.Context(), messages)[0]; r.Status != delivery.Permanent || r.Detail != "APNs answered 410 "+reason {
			t.Errorf("%s: %+v", reason, r)
		}
	}
	a.Fail("", pushtest.Fault{Status: 403, Reason: "InvalidProviderToken"})
	if r := s.Send(t.Context(), toDevices("1", iPhone("")))[0]; r.Status != delivery.Transient || !r.Apart || !strings.HasSuffix(r.Detail, ": check the provider's settings") {
		t.Errorf("%+v", r)
	}
}

// TestTheQuotaOfAConfiguredProject: each project has its own quota, and each phone takes one
// message out of it. A message that waits for the quota goes to no other account of the project.
func TestTheQuotaOfAConfiguredProject(t *testing.T) {
	first, firstService, _ := google(t, "first-project", 1)
	second, secondService, _ := google(t, "second-project", 600_000)
	behind, behindService, _ := google(t, "first-project", 600_000)
	s := push.New(push.Options{})
	s.Set([]push.Configured{{Provider: 1, Service: firstService}, {Provider: 2, Service: secondService}, {Provider: 3, Order: 1, Service: behindService}})
	for range 3 {
		s.Send(t.Context(), toDevices("1", android("first-project"), android("second-project")))
	}
	if first.Count() != 1 || second.Count() != 3 || behind.Count() != 0 {
		t.Errorf("%d, %d and %d messages", first.Count(), second.Count(), behind.Count())
	}
	if r := s.Send(t.Context(), toDevices("1", android("first-project")))[0]; r.Status != delivery.Throttled || !r.Held || !r.Apart || r.Via != 1 || r.After < time.Second {
		t.Errorf("beyond the quota: %+v", r)
	}
}

// TestPhonesOfAServiceThatCannotBeMade wait, and no other service takes them.
func TestPhonesOfAServiceThatCannotBeMade(t *testing.T) {
	s := push.New(push.Options{})
	s.Set([]push.Configured{{Provider: 1, Service: push.Unusable{Kind: "apns", OfApp: provider.App{Platform: user.IOS, Name: "com.market"}}}})
	for _, app := range []string{"", "com.market"} {
		if r := s.Send(t.Context(), toDevices("1", iPhone(app)))[0]; r.Status != delivery.Throttled || r.After != push.UnusableFor || !r.Held || !r.Apart || r.Via != 1 {
			t.Errorf("%q: %+v", app, r)
		}
	}
}
