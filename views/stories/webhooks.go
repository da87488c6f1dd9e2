package stories

import (
	"time"

	"dropbell/domain/event/hook"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	workpages "dropbell/views/pages/work"
)

func webhookEndpoints() []hook.Endpoint {
	since, ok := Now().Add(-3*time.Hour), Now().Add(-time.Minute)
	return []hook.Endpoint{
		{ID: 1, Shop: 10, Input: hook.Input{URL: "https://shop.example.com/hooks", Description: "Order service", Enabled: true}, LastSuccessAt: &ok, Version: 1},
		{ID: 2, Shop: 10, Input: hook.Input{URL: "https://a-rather-long-name-of-a-server.warehouse.example.com/v1/dropbell/events", Enabled: true,
			Types: []hook.Type{hook.CouponUsed, hook.CouponRefunded}}, FailingSince: &since, Failures: 6, LastError: "HTTP 503", Waiting: 1240, Version: 3},
		{ID: 3, Shop: 10, Input: hook.Input{URL: "https://old.example.com/"}, Why: hook.ByFailing, DisabledAt: &since, Version: 2},
		{ID: 4, Shop: 10, Input: hook.Input{URL: "https://new.example.com/", Enabled: true}, Version: 1},
	}
}

func webhookList() workpages.Webhooks {
	return workpages.Webhooks{List: webhookEndpoints(), Shops: map[int64]string{10: "Tea House"}, MayAdd: true}
}

func webhookPage() workpages.WebhookPage {
	p := workpages.WebhookPage{Endpoint: webhookEndpoints()[1], Shop: "Tea House", Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="}
	p.Next = "/webhooks/2?before=7"
	until := Now().Add(20 * time.Hour)
	p.OldUntil = &until
	for i := range 30 {
		p.Hours = append(p.Hours, hook.Hour{Hour: Now().Truncate(time.Hour).Add(-time.Duration(i) * time.Hour), Delivered: int64(i * 40), Failed: int64(i % 5 * 30), Took: time.Duration(i) * time.Second})
	}
	p.Deliveries = []hook.Delivery{
		{ID: 9, EventID: 109, Cause: "event", State: "waiting", Attempts: 2, Type: hook.CouponUsed, Subject: "coupon/9007199254740993", Sequence: 47, Items: 1, Status: 503, Error: "HTTP 503", CreatedAt: Now().Add(-time.Minute)},
		{ID: 8, EventID: 108, Cause: "event", State: "delivered", Attempts: 1, Type: hook.ReservationMade, Subject: "drop/1", Sequence: 46, Items: 500, Status: 204, CreatedAt: Now().Add(-time.Hour)},
		{ID: 7, EventID: 107, Cause: "test", State: "failed", Attempts: 10, Type: hook.TestEvent, Subject: "endpoint/2", Sequence: 45, Items: 1, Error: "timed out", CreatedAt: Now().Add(-80 * time.Hour)},
		{ID: 6, EventID: 106, Cause: "event", State: "waiting", Type: hook.DropOpened, Subject: "drop/1", Sequence: 44, Items: 1, CreatedAt: Now().Add(-time.Second)},
	}
	return p
}

func webhookForm() workpages.WebhookForm {
	return workpages.WebhookForm{Values: map[string]string{"shop_number": "10", "url": "http://10.0.0.1/"}, Types: []hook.Type{hook.DropOpened}, Enabled: true,
		Shops: []template.Shop{{Number: 10, Name: "Tea House"}}, RequestKey: "x",
		Errors: []fault.Field{{Name: "url", Key: "rule.hook_url", Message: "must be an https address"}}}
}

func webhookDelivery() workpages.WebhookDelivery {
	d := hook.Details{Delivery: webhookPage().Deliveries[0], Payload: hook.Example(hook.CouponUsed)}
	d.NextAt = Now().Add(5 * time.Minute)
	d.Tries = []hook.Attempt{{Attempt: 1, At: Now().Add(-time.Minute), Took: 85 * time.Millisecond, Status: 503, Error: "HTTP 503", Response: "<html><body>Service Unavailable</body></html>"},
		{Attempt: 2, At: Now(), Took: 15 * time.Second, Error: "timed out"}}
	return workpages.WebhookDelivery{Endpoint: webhookEndpoints()[1], Details: d}
}
