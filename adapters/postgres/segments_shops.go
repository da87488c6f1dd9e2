package postgres

import (
	"context"
)

// TemplateShops returns the shops of templates; see [segment.TemplateStore].
func (s Segments) TemplateShops(ctx context.Context, templates []int64) (map[int64]int64, error) {
	return templateShops(ctx, s.DB, templates)
}

// TemplateShops returns the shops of templates; see [segment.TemplateStore].
func (s Campaigns) TemplateShops(ctx context.Context, templates []int64) (map[int64]int64, error) {
	return templateShops(ctx, s.DB, templates)
}
