/* place.h: converts positions from one widget to another.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_PLACE_H
#define WEFT_GTK_PLACE_H

#include <gtk/gtk.h>

/* Stores the position in the widget `other` of the point (x, y) of `widget`, in px.  Returns FALSE and leaves the outputs
 * unchanged if the widgets share no window. */
static inline gboolean place_in(GtkWidget *widget, GtkWidget *other, double x, double y, double *other_x, double *other_y)
{
	graphene_point_t at;
	if (!gtk_widget_compute_point(widget, other, &GRAPHENE_POINT_INIT((float)x, (float)y), &at))
		return FALSE;
	*other_x = at.x;
	*other_y = at.y;
	return TRUE;
}

#endif
