package coupon

// NoticeBalance compares what the calendar says of one template's notices of
// one day with the notices themselves. Take it from one snapshot: each change
// of a notice changes both.
type NoticeBalance struct {
	TemplateID int64
	Kept       NoticeDay // the calendar
	// How many notices are stored, by status; without those that became
	// unnecessary.
	Waiting, Sent, Failed int64
}

// Difference returns how many notices are not accounted for, or are twice.
func (b NoticeBalance) Difference() int64 {
	stored := b.Waiting + b.Sent + b.Failed
	return abs(b.Kept.Planned-b.Kept.Dropped-stored) + abs(b.Kept.Sent-b.Sent) + abs(b.Kept.Failed-b.Failed)
}

func abs(n int64) int64 { return max(n, -n) }

// RunBalance compares the notices of one run that has ended with its batches.
// Both are written by different steps: the batches by the workers that sent
// them, the notices once all batches were done.
type RunBalance struct {
	Run, TemplateID int64
	Readers         int64 // of the batches
	// Lost readers are in a batch and have no notice, though one was still
	// necessary.
	Lost int64
	// Wrong counts notices that are stored as sent though no channel reached the
	// user, or the opposite, or have no status yet, or whose user is in no batch.
	Wrong int64
}

// Difference returns how many readers are not accounted for.
func (b RunBalance) Difference() int64 { return b.Lost + b.Wrong }
