package task

import (
	"fmt"
	"time"
)

// Names of campaign tasks.
const (
	StartCampaign = "campaign.start.v1"
	CutCampaign   = "campaign.cut.v1"
)

// CampaignPayload is the payload of [StartCampaign] and [CutCampaign].
type CampaignPayload struct {
	CampaignID int64 `json:"campaign_id,string"`
}

// Start returns the timer of a campaign that starts at the instant given.
func Start(campaignID int64, startsAt time.Time) Task {
	if !startsAt.IsZero() {
		startsAt = startsAt.Add(-ahead)
	}
	return Task{Name: StartCampaign, Key: fmt.Sprint(campaignID), Queue: TimerQueue,
		Payload: CampaignPayload{campaignID}, At: startsAt, Timeout: time.Minute}
}

// Cut returns the task that continues cutting a campaign's audience.
func Cut(campaignID int64) Task {
	return Task{Name: CutCampaign, Key: fmt.Sprint(campaignID), Queue: TimerQueue,
		Payload: CampaignPayload{campaignID}, Timeout: 10 * time.Minute}
}
