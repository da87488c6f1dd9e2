package audience

import (
	"context"

	"dropbell/adapters/postgres/internal/pg"
)

// TemplateShops returns the shops of templates; see [segment.TemplateStore].
func (s Segments) TemplateShops(ctx context.Context, templates []int64) (map[int64]int64, error) {
	return pg.TemplateShops(ctx, s.DB, templates)
}
