package campaigns

import (
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
)

// Blocks are the blocks of a mail by language tag; "default" is the default language.
type Blocks map[string][]CampaignBlock

// CampaignBlock is a part of a mail.
type CampaignBlock struct {
	Type string `json:"type" enum:"heading,text,image,button,coupon,footer" example:"text"`
	Text string `json:"text,omitempty" doc:"The text, in Markdown where type is text or footer; of an image the alternative text, of a button its words." example:"Come and see"`
	URL  string `json:"url,omitempty" doc:"The https address of an image." example:"https://shop.example/cup.png"`
}

// VersionTest is a test of two contents with a share of the recipients.
type VersionTest struct {
	SharePercent int    `json:"share_percent" minimum:"1" maximum:"90" doc:"The percentage of the recipients who are in the test." example:"20"`
	By           string `json:"by" enum:"opened,claimed,revenue" doc:"What decides: clicks of those who were sent to, claims or the amount of orders with a coupon of the template of all in the test. Without a template only opened." example:"opened"`
	Minutes      int    `json:"minutes" minimum:"10" maximum:"20160" doc:"Minutes from the start until the decision; the campaign has to last longer." example:"240"`
	EndEarly     bool   `json:"end_early,omitempty" doc:"One more look at half of the time: the test ends there if the difference is beyond chance with 99.9 % confidence (Haybittle and Peto)."`
	Winner       string `json:"winner,omitempty" enum:"a,b" doc:"The content that won; absent before. Ignored in a request." example:"b"`
}

func (t *VersionTest) test() *delivery.Test {
	if t == nil {
		return nil
	}
	return &delivery.Test{Share: t.SharePercent, By: t.By, Minutes: t.Minutes, Early: t.EndEarly}
}

func testJSON(t *delivery.Test) *VersionTest {
	if t == nil {
		return nil
	}
	w := &VersionTest{SharePercent: t.Share, By: t.By, Minutes: t.Minutes, EndEarly: t.Early}
	if t.Winner != nil {
		w.Winner = groupName(*t.Winner)
	}
	return w
}

// CampaignLook is one look at a test.
type CampaignLook struct {
	Look   string        `json:"look" enum:"halfway,end" example:"end"`
	At     time.Time     `json:"at" doc:"The numbers count events before this instant."`
	Winner string        `json:"winner,omitempty" enum:"a,b" doc:"Absent if the test went on." example:"b"`
	Arms   []CampaignArm `json:"arms" nullable:"false" doc:"a, then b."`
}

// CampaignArm are the numbers of one content by which a test was decided.
type CampaignArm struct {
	Group    string  `json:"group" enum:"a,b" example:"a"`
	Assigned int64   `json:"assigned" example:"1000"`
	Sent     int64   `json:"sent" example:"980"`
	Did      int64   `json:"did" doc:"Recipients who clicked, claimed or paid." example:"49"`
	Revenue  int64   `json:"revenue,omitempty" doc:"Of a test by revenue: the amount of their orders, in minor units of currency." example:"245000"`
	Currency string  `json:"currency,omitempty" example:"CNY"`
	Value    float64 `json:"value" doc:"The rate, or of a test by revenue the mean amount per recipient." example:"0.05"`
	Low      float64 `json:"low" doc:"With 95 % confidence the true value is at least this (Wilson; of a mean, 1.96 standard errors)." example:"0.038"`
	High     float64 `json:"high" doc:"And at most this." example:"0.0655"`
}

// CampaignPoint is what recipients did in a span of time.
type CampaignPoint struct {
	At        time.Time `json:"at" doc:"The beginning of the span; it ends where the next may begin."`
	Sent      int64     `json:"sent" example:"5000"`
	Delivered int64     `json:"delivered" doc:"Of those sent in the span, reported as delivered." example:"4900"`
	Opened    int64     `json:"opened" doc:"Recipients who followed a link for the first time." example:"240"`
	Claimed   int64     `json:"claimed" doc:"Recipients who got a coupon of the template." example:"80"`
	Earned    int64     `json:"earned" doc:"The amount of orders that recipients paid with coupons of the template, in minor units, without refunds." example:"400000"`
}

func looksJSON(looks []campaign.TestDecision, by string) []CampaignLook {
	list := []CampaignLook{}
	for _, d := range looks {
		w := CampaignLook{Look: map[campaign.Look]string{campaign.Halfway: "halfway", campaign.AtEnd: "end"}[d.Look], At: d.At.UTC(), Arms: []CampaignArm{}}
		if d.Winner != nil {
			w.Winner = groupName(*d.Winner)
		}
		for _, a := range d.Arms {
			value, low, high := a.Value(by)
			w.Arms = append(w.Arms, CampaignArm{groupName(a.Variant), a.Assigned, a.Sent, a.Did, a.Revenue, a.Currency, value, low, high})
		}
		list = append(list, w)
	}
	return list
}

func seriesJSON(s campaign.Series) []CampaignPoint {
	list := []CampaignPoint{}
	for _, p := range s.Points {
		list = append(list, CampaignPoint{p.At.UTC(), p.Sent, p.Delivered, p.Opened, p.Claimed, p.Earned})
	}
	return list
}
