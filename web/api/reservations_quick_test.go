package api

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestScanWishTakesOnlyThePlainForm(t *testing.T) {
	good := `{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`
	want := ReservationWish{TemplateID: "1", ShopNumber: "10", Reminders: []ReminderWish{{Channel: "app", Minutes: 10}}}
	for _, body := range []string{good,
		" { \"reminders\" : [ { \"minutes\" : 10 , \"channel\" : \"app\" } ] , \"shop_number\" : \"10\" , \"template_id\" : \"1\" } \n"} {
		if got, ok := scanWish([]byte(body)); !ok || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %+v %v", body, got, ok)
		}
	}
	for _, body := range []string{
		``, `{}`, `[]`, good + `x`, good + good, good[:len(good)-1],
		`{"template_id":1,"shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"template_id":"0","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"template_id":"9223372036854775808","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"template_id":"1","template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"Template_ID":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"template_id":"\u0031","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[]}`,
		`{"template_id":"1","shop_number":"10","reminders":null}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10,"x":1}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"","channel":"app","minutes":10}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10,"minutes":15}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":07}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10.0}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":1e1}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":-5}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":65}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app"}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10},]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10}],"more":1}`,
	} {
		if got, ok := scanWish([]byte(body)); ok {
			t.Errorf("taken: %s as %+v", body, got)
		}
	}
}

// What the scanner takes, the general reader reads in the same way.
func TestScanWishAgreesWithJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(rapid.StringMatching(`\{("template_id":"[0-9]{0,4}",?)("shop_number":"[0-9]{1,3}",?)"reminders":\[(\{"channel":"[a-z"]{2,7}","minutes":[0-9]{1,3}\},?){0,3}\][}\]]`).Draw(t, "body"))
		quick, ok := scanWish(body)
		if !ok {
			return
		}
		var slow ReservationWish
		if err := json.Unmarshal(body, &slow); err != nil {
			t.Fatalf("%s is not JSON: %v", body, err)
		}
		if d := cmp.Diff(slow, quick); d != "" {
			t.Fatalf("%s: %s", body, d)
		}
	})
}
